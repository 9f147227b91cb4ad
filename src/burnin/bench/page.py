"""Writes a measurement down: for the terminal, and as docs/benchmarks.md."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from burnin.bench.contestants import BASELINE, FLOOR, JAX, OURS, TORCHEBM
from burnin.core import InputError
from burnin.studies.table import write_json

Result = Mapping[str, Any]
PAGE = Path("docs") / "benchmarks.md"
TABLE = Path("results") / "bench" / "table.json"
BUSY = 0.5
"""A load above this before the start means that others are at work."""
COMPARED = {
    BASELINE: f"× faster than {BASELINE}",
    TORCHEBM: "× faster than torchebm",
    JAX: "× faster than JAX",
    FLOOR: "× slower than the floor",
}


def write_docs(folder: Path, result: Result) -> tuple[Path, Path]:
    """Writes the measurement and the page made of it below a working copy's folder; returns both paths."""
    page, table = folder / PAGE, folder / TABLE
    if not page.parent.is_dir():
        raise InputError(f"there is no folder {page.parent}; --docs is for a working copy of burnin")
    write_json(table, result)
    page.write_text(write_page(json.loads(table.read_text(encoding="utf-8"))), encoding="utf-8")
    return page, table


def write_summary(result: Result) -> str:
    """What the command prints: ratios, times, memory, first calls, requirements."""
    parts = [f"## {title}\n\n{text}" for title, text in sections(result)]
    notes = [f"{text}\n" for text in [*result["missing"].values(), *failures(result), *busy(result)]]
    return "\n".join([*parts, *notes])


def write_page(result: Result) -> str:
    """docs/benchmarks.md."""
    made, settings = result["made_by"], result["settings"]
    versions = [f"{name} {made[name]}" for name in ("torch", "jax", "torchebm") if made.get(name)]
    parts = [f"## {title}\n\n{text}" for title, text in sections(result)]
    notes = "".join(f"- {text}\n" for text in failures(result))
    return (
        "# Benchmarks\n\n"
        "This page is written by `burnin bench --peers --docs` from `results/bench/table.json`; "
        "`python docs/draw.py` writes it again from there.\n\n"
        f"`{made['command']}`, burnin {made['version']}, commit {made['commit']}, {made['time'][:10]}, "
        f"{made['processor']}, {made['machine']}, Python {made['python']}, {', '.join(versions)}; "
        f"{settings['repeats']} turns of about {settings['seconds']:g} s for each contestant.\n\n"
        + "".join(f"Note: {text}.\n\n" for text in busy(result))
        + "\n".join(parts)
        + (f"\n## What failed\n\n{notes}" if notes else "")
        + "\n"
        + EXPLANATION
    )


def sections(result: Result) -> list[tuple[str, str]]:
    """The titled tables of a measurement, ratios first."""
    found: list[tuple[str, str]] = []
    tables = result["tables"]
    found += [(f"Ratios, {name}", ratio_table(result, table)) for name, table in tables.items()]
    for name, table in tables.items():
        found.append((f"Microseconds for each step, {name}", _cells(result, table, time_cell)))
    for name, table in tables.items():
        found.append((f"Peak memory, {name}", _cells(result, table, memory_cell)))
    for name, table in tables.items():
        found.append((f"First call in seconds, {name}", _cells(result, table, first_cell)))
    if len(tables) > 1:
        found.append(("What more cores bring", cores_table(result)))
    return [*found, ("What is required", requirement_table(result))]


def ratio_table(result: Result, table: Result) -> str:
    """burnin compiled against the others: the middle over the turns and its quartiles."""
    shown = [name for name in COMPARED if name in result["contestants"]]
    rows = []
    for case, measured in table["ratios"].items():
        cells = []
        for name in shown:
            ratio = measured.get(name)
            low, high = ratio["quartiles"] if ratio else (0, 0)
            cells.append(f"**{ratio['median']:.2f}** ({low:.2f}–{high:.2f})" if ratio else "")
        path = table["rows"][case].get(OURS, {}).get("path") or ""
        rows.append([result["cases"][case]["title"], path, *cells])
    return markdown(["", "burnin's path", *(COMPARED[name] for name in shown)], rows)


def cores_table(result: Result) -> str:
    """Median time on one core over that in the second table; below 1 threads cost more than they bring."""
    one, many = list(result["tables"].values())[:2]
    rows = []
    for case, row in one["rows"].items():
        cells = []
        for name in result["contestants"]:
            pair = (row.get(name, {}).get("median"), many["rows"][case].get(name, {}).get("median"))
            cells.append("" if None in pair else f"{pair[0] / pair[1]:.2f}")
        rows.append([result["cases"][case]["title"], *cells])
    return markdown(["× faster than on one core", *result["contestants"]], rows)


def requirement_table(result: Result) -> str:
    """Every requirement with its worst ratio in each table."""
    rows = []
    for requirement in result["requirements"]:
        cells = []
        for check in requirement["tables"].values():
            if check["ratio"] is None:
                cells.append("not measured")
                continue
            case = result["cases"][check["case"]]["title"]
            cells.append(f"{'met' if check['met'] else '**not met**'}: {check['ratio']:.2f} ({case})")
        rows.append([requirement["text"], *cells])
    return markdown(["the worst ratio", *result["tables"]], rows)


def time_cell(cell: Result) -> str:
    """Median, quartiles and least, in microseconds."""
    low, high = (microseconds(value) for value in cell["quartiles"])
    return f"**{microseconds(cell['median'])}** ({low}–{high}), least {microseconds(cell['least'])}"


def memory_cell(cell: Result) -> str:
    """Peak of the process, and how much of it came after the imports."""
    if cell["peak_mb"] is None:
        return ""
    return f"{cell['peak_mb']:.0f} MB (+{max(0.0, cell['increase_mb']):.0f})"


def first_cell(cell: Result) -> str:
    """Building and the first steps, compilation included."""
    return f"{cell['first_call']:.2f}"


def failures(result: Result) -> list[str]:
    """A line for each contestant that failed somewhere."""
    return [
        f"{name}, {result['cases'][case]['title']}, {contestant}: {cell['error']}"
        for name, table in result["tables"].items()
        for case, row in table["rows"].items()
        for contestant, cell in row.items()
        if "error" in cell
    ]


def busy(result: Result) -> list[str]:
    """A line about other work on the machine, which OpenMP's threads suffer from most."""
    load = result["settings"].get("load")
    if load is None or load < BUSY:
        return []
    return [f"the machine was busy before the measurement began (load {load:.1f}); repeat it on a quiet one"]


def microseconds(seconds: float) -> str:
    """Three digits, more for long ones.

    Example:
        >>> microseconds(123.4e-6), microseconds(0.0123456), microseconds(7.25e-6)
        ('123', '12,346', '7.25')
    """
    value = seconds * 1e6
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table whose columns are aligned in the source too."""
    safe = [[cell.replace("|", "\\|") for cell in row] for row in [head, *rows]]
    widths = [max(3, *(len(row[i]) for row in safe)) for i in range(len(head))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
        for row in safe
    ]
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([lines[0], rule, *lines[1:]]) + "\n"


def _cells(result: Result, table: Result, write: Callable[[Result], str]) -> str:
    """Cases down, contestants across; an error stands in its cell."""
    rows = []
    for case, row in table["rows"].items():
        cells = []
        for name in result["contestants"]:
            cell = row.get(name)
            cells.append("" if cell is None else cell["error"] if "error" in cell else write(cell))
        rows.append([result["cases"][case]["title"], *cells])
    return markdown(["", *result["contestants"]], rows)


EXPLANATION = """## How it was measured

```sh
burnin bench --peers --json bench.json
burnin bench --sizes mlp-100x2,training --quick
```

Rows are chains × inputs, hidden units × layers of a SiLU network; a ConvNet is named by its first width.
A hybrid update is two arms (noise × 1, data × 25) of 100 Langevin steps each (20 for the toy with two
inputs), the contrast, and Adam; its "step" is the whole update, and its
loop is the script that runs one arm after the other. One HMC step is five leapfrog steps.

- **burnin compiled** is `Engine(compile="always")`, **burnin plain** `Engine(compile="never")`. The **loops**
  are what one writes by hand: in place, gradients with respect to the input by `torch.autograd.grad`, or by
  `.backward()`, which computes those of the weights too. **torchebm** is its `LangevinDynamics`. **JAX** is
  jit + scan with the random numbers drawn inside; for ConvNets jit of one step, because XLA on CPU runs
  convolutions inside a scan several times slower. The **floor** is nothing but the matrix products (or
  convolutions) of the energy and of its input gradient, by PyTorch, into memory that is there already: no
  activation, no noise, no bookkeeping. It is PyTorch's floor: other kernels may go below it.
- burnin's `ConvNet` keeps its weights channels last, and so does the floor; the loops and torchebm have
  torch's default layout. A good part of the ConvNets' ratios is that layout.
- All have the same weights, the same start in every turn and float32. Every contestant has a process of its
  own. The processes take turns, one at work at a time while the others sleep, and another one begins each
  round, so that a disturbance hits all alike. A ratio is taken within each round; the number shown is the
  median over the rounds, in brackets the quartiles. A turn has as many steps as take about the time above.
- Memory is the peak of the contestant's process and, in brackets, what came after the imports. All import
  PyTorch, so compare the brackets. A compiler runs in a process of its own and is not in it.
- The first call builds the contestant, compiles where it compiles, and takes ten steps (one update). What
  burnin compiles it keeps on disk, so the first call of another day is shorter.

## Threads

**One core**: every process is held to one core and one thread, so nobody has a second one without saying.
**All cores**: every process may use all, with its library's own number of threads. "What more cores bring" is
the first time over the second; where it is near or below 1, handing out the parts of a small matrix product
takes as long as the product. There it is better to run several processes with one thread each.
burnin changes no thread setting; `torch.set_num_threads`, `OMP_NUM_THREADS` and `run.threads` of a recipe do.
"""
