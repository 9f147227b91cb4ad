# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed

.PHONY: setup demo test lint reproduce clean

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "burnin needs Python 3.11 or newer: make PYTHON=python3.11 setup")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $(STAMP)

# Trains the hybrid scheme on the 10-D rings (about a minute on 2 cores) and writes runs/demo/report.html.
demo: setup
	$(BIN)/burnin demo

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: lint
	$(BIN)/python -m pytest -n 2

# The hybrid paper's Fig. 2 and its table: five schemes, up to three hours on 2 cores; rows resume.
reproduce: setup
	$(BIN)/burnin reproduce rings

clean:
	rm -rf .venv dist build .pytest_cache .mypy_cache .ruff_cache
