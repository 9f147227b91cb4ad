"""The commands `fit` and `score`: a density of a table, and the scores of rows under it."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

from burnin.core import InputError, Outcome
from burnin.data import Frame, load_frame, save_frame
from burnin.terminal import Devices, Nodes, fitting_bar, make_console

if TYPE_CHECKING:
    from burnin.fitted import FittedTable

INTERRUPTED = 130
MOST_UPDATES = 2000
Bound = tuple[float | None, float | None]
Impute = Annotated[bool, typer.Option("--impute", help="Fill missing values instead of refusing them.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the outcome as JSON.")]
BoundList = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN=LOW:HIGH",
        help="What a column's values can be; either end may be left out; may be repeated.",
    ),
]
Contamination = Annotated[
    float | None, typer.Option(help="Share of the fitted rows that count as outliers; 0.05 by default.")
]


def register(app: typer.Typer) -> None:
    """Adds the commands to the program."""
    app.command("fit", epilog="Example: burnin fit people.csv --target-col id --minutes 5 --out runs/people")(
        fit_table
    )
    app.command("score", epilog="Example: burnin score runs/people new.csv -o scores.csv")(score_rows)


def fit_table(
    data: Annotated[
        Path | None,
        typer.Argument(
            help="A table (.csv, .parquet, .npy, .npz) or a folder of pictures.", show_default=False
        ),
    ] = None,
    target_col: Annotated[
        list[str] | None,
        typer.Option(help="A column to leave out, such as a label or an id; may be repeated."),
    ] = None,
    minutes: Annotated[float | None, typer.Option(help="Time that may be used, about.")] = None,
    out: Annotated[Path | None, typer.Option(help="The run's folder; runs/NAME by default.")] = None,
    bounds: BoundList = None,
    impute: Impute = False,
    side: Annotated[
        int | None, typer.Option(help="Pictures: the middle square of each, made so large; 32 at most.")
    ] = None,
    grey: Annotated[bool, typer.Option("--grey", help="Pictures: without their colours.")] = False,
    contamination: Contamination = None,
    max_updates: Annotated[
        int | None,
        typer.Option(help="Updates of the network at most; 2000 of a table, 3000 of pictures.", min=1),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of everything drawn.", min=0)] = 0,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the fit in --out.")] = False,
    as_json: AsJson = False,
) -> None:
    """Fit a density to a table: chooses its settings, trains while held-out rows gain, says how good it is.

    Of a folder of pictures, a model that draws and scores pictures. Ctrl-C keeps the best so far.
    """
    import torch

    from burnin.correcting import Effort, Listener
    from burnin.estimator import EnergyDensity
    from burnin.fitting import resume_rows
    from burnin.picture_commands import fit_folder, resume_folder
    from burnin.runs import available_cores
    from burnin.samplers import Engine
    from burnin.training import RunFolder

    console = make_console()
    torch.set_num_threads(1)  # small networks run fastest so; native chains use every core all the same

    def say(text: str) -> None:
        console.print(text, markup=False)

    engine = Engine(threads=available_cores(), say=say)
    share = 0.05 if contamination is None else contamination
    if data is not None and data.is_dir() and not resume:
        if target_col or bounds or impute:
            raise InputError(
                f"{data} is a folder of pictures; --target-col, --bounds and --impute are for tables"
            )
        fit_folder(data, out, side, grey, minutes, max_updates, share, seed, as_json, engine)
        return
    if side is not None or grey:
        raise InputError("--side and --grey are for a folder of pictures")
    if resume and out is not None and resume_folder(out, minutes, as_json, engine):
        return
    max_updates = max_updates or MOST_UPDATES
    density = EnergyDensity(
        minutes=minutes,
        max_updates=max_updates,
        contamination=share,
        bounds=dict(map(parse_bound, bounds or [])),
        random_state=seed,
    )
    with fitting_bar(console, max_updates, density.batch_size) as (update, report):
        listener = Listener(update, say, report)
        if resume:
            if out is None:
                raise InputError("--resume needs --out, the folder of the fit to go on with")
            folder = out
            held = RunFolder(folder, resume=True)
            fitted, outcome = resume_rows(held, Effort(minutes), listener=listener, engine=engine)
        else:
            if data is None:
                raise InputError("give a table to fit (.csv, .parquet, .npy, .npz) or a folder of pictures")
            folder = out or Path("runs") / data.stem
            RunFolder.require_usable(folder)
            frame = _read(data, target_col or [], seed if impute else None)
            try:
                density.fit_in(frame, folder, find_bounds=True, listener=listener, engine=engine)
            except InputError as error:
                raise InputError(f"{data}: {error}") from None
            fitted, outcome = density.fitted_, density.outcome_
    if as_json:
        print(json.dumps(_summary(fitted, folder), ensure_ascii=False, allow_nan=False))
    else:
        print(*_sentences(fitted), sep="\n")
    if outcome is Outcome.INTERRUPTED:
        console.print(f"{outcome.message} ({folder})")
        raise typer.Exit(INTERRUPTED)
    console.print(
        f"fitted: {folder}. Next: burnin sample {folder} -o new.csv, burnin score {folder} other.csv, "
        f"burnin report {folder}"
    )


def score_rows(
    run: Annotated[Path, typer.Argument(help="A folder that burnin fit made, or that was exported.")],
    data: Annotated[Path, typer.Argument(help="Rows with the same columns; of pictures, a folder.")],
    output: Annotated[Path, typer.Option("-o", help="Where to: .csv or .parquet.")] = Path("scores.csv"),
    contamination: Contamination = None,
    impute: Impute = False,
    force: Annotated[bool, typer.Option("--force", help="Write over an existing file.")] = False,
    devices: Devices = 1,
    nodes: Nodes = 1,
    as_json: AsJson = False,
) -> None:
    """Score rows: log-density, percentile among the fitted rows, outlier or not; and the mean log-density."""
    import torch

    from burnin.interop.sources import is_exported, load_table
    from burnin.launching import take_part
    from burnin.picture_commands import score_folder
    from burnin.runs import available_cores

    ranks = take_part(devices, nodes)
    if ranks.neighbours > 1:
        torch.set_num_threads(max(1, available_cores() // ranks.neighbours))
    console = make_console(quiet=ranks.rank > 0)
    require_free(output, force)
    if not is_exported(run) and score_folder(run, data, output, contamination, as_json, ranks):
        return
    fitted = load_table(run)
    frame = load_frame(data)
    try:
        codes = fitted.encoding.codes(frame, fill=impute)
    except InputError as error:
        raise InputError(f"{data}: {error}") from None
    log_density, threshold = fitted.log_density(codes, frame, ranks), fitted.threshold(contamination)
    if ranks.rank > 0:
        ranks.any(False)  # nobody leaves before the first has written
        return
    ignored = [name for name in frame.names if name not in {c.name for c in fitted.encoding.columns}]
    for note in [*frame.notes, *([f"not in the density: {', '.join(ignored)}"] if ignored else [])]:
        console.print(f"{data}: {note}", markup=False)
    outlier = log_density < threshold
    columns = {
        "log_density": log_density,
        "percentile": fitted.percentile(log_density),
        "outlier": outlier.astype(float),
    }
    save_frame(Frame(columns), output)
    mean = fitted.mean_density(log_density)
    if as_json:
        answer = mean.as_dict() | {"outliers": int(outlier.sum()), "threshold": threshold}
        answer |= {"log_z_by": fitted.normaliser.by, "trusted": fitted.normaliser.trusted}
        finite = {k: v if not isinstance(v, float) or math.isfinite(v) else None for k, v in answer.items()}
        print(json.dumps(finite | {"file": str(output)}, allow_nan=False))
    else:
        print(f"mean log-density: {mean.describe()}, log Z by {fitted.normaliser.by}")
        print(f"outliers: {int(outlier.sum())} of {mean.rows} rows (log-density below {threshold:.4g})")
        if mean.outside:
            print(
                f"impossible: {mean.outside} rows, with words never seen or beyond a bound; not in the mean"
            )
    console.print(f"scores: {output}")
    ranks.any(False)


def _read(data: Path, without: list[str], impute: int | None) -> Frame:
    """The table less some columns, its gaps filled if there is a seed for it."""
    frame = load_frame(data)
    try:
        frame = frame.without(without)
        if impute is not None:
            frame = frame.imputed(np.random.default_rng(impute))
    except InputError as error:
        raise InputError(f"{data}: {error}") from None
    return frame


def parse_bound(text: str) -> tuple[str, Bound]:
    """`age=0:120` → ("age", (0.0, 120.0))."""
    name, equals, ends = text.rpartition("=")
    low, colon, high = ends.partition(":")
    try:
        pair = tuple(float(end) if end.strip() else None for end in (low, high))
    except ValueError:
        pair = ()
    if not equals or not colon or len(pair) != 2:
        raise InputError(f"--bounds {text!r} is not of the form COLUMN=LOW:HIGH, such as age=0:120")
    return name, (pair[0], pair[1])


def require_free(output: Path, force: bool, endings: tuple[str, ...] = (".csv", ".parquet")) -> None:
    """Raises InputError unless a file of one of these endings can be written there."""
    if output.suffix.lower() not in endings:
        raise InputError(f"the output {output} must end in {' or '.join(endings)}")
    if not output.parent.is_dir():
        raise InputError(f"there is no folder {output.parent} for the output {output.name}; make it first")
    if output.exists() and not force:
        raise InputError(f"{output} exists; choose another name, or add --force to write over it")


def _sentences(fitted: FittedTable) -> list[str]:
    from burnin.fitted import MeanDensity

    held = MeanDensity.of(fitted.about["held_out"])
    doubt = "" if fitted.normaliser.trusted else "; too few effective draws to be sure"
    lines = [f"held-out rows: {held.describe()}, log Z by {fitted.normaliser.by}{doubt}"]
    if fitted.mass.share < 1:
        lines.append(f"within the bounds: {100 * fitted.mass.share:.1f}% of the model's mass")
    return lines


def _summary(fitted: FittedTable, folder: Path) -> dict[str, object]:
    from dataclasses import asdict

    return {
        "run": str(folder),
        "columns": {column.name: column.describe() for column in fitted.encoding.columns},
        "normaliser": asdict(fitted.normaliser),
        "mass": fitted.mass.share,
        **fitted.about,
    }
