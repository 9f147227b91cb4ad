# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed

.PHONY: setup demo test lint dist audit docs reproduce clean

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "burnin needs Python 3.11 or newer: make PYTHON=python3.11 setup")'
	$(PYTHON) -m venv .venv
	PIP_CONSTRAINT=constraints.txt PIP_BUILD_CONSTRAINT=constraints.txt $(BIN)/python -m pip install --quiet --editable '.[dev]'
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

# Wheel and sdist in dist/, and a smoke test of the wheel without the repository.
dist: setup
	rm -rf dist
	$(BIN)/python -m hatchling build -d dist
	$(BIN)/python -m pytest -q tests/supply/test_dist.py

# Known vulnerabilities of the pinned packages: needs a network, and fails where there is none.
audit: setup
	$(BIN)/python -m pip check
	$(PYTHON) -m venv .venv/audit
	.venv/audit/bin/python -m pip install --quiet pip-audit==2.10.1
	.venv/audit/bin/python tools/supply.py audit

# The reference of everything public, in docs/api (not kept in git).
docs: setup
	$(BIN)/python tools/api.py

# The hybrid paper's Fig. 2 and its table: five schemes, up to three hours on 2 cores; rows resume.
reproduce: setup
	$(BIN)/burnin reproduce rings

clean:
	rm -rf .venv dist build .pytest_cache .mypy_cache .ruff_cache
