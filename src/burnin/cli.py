"""The command line: fit, score, impute, train, sample, export, diagnose, check, test, compare, report, …"""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from burnin import (
    class_commands,
    data_commands,
    impute_command,
    interop_commands,
    measure_commands,
    stein_commands,
    study_commands,
    sweep_commands,
    table_commands,
)
from burnin.config import load_config, read_run_config
from burnin.core import BurninError, InputError, Outcome
from burnin.settings import Config
from burnin.terminal import Devices, Nodes, Set, harmless, make_console, stages_bar, training_bar

if TYPE_CHECKING:
    from burnin.ranks import Ranks
    from burnin.samplers import Engine

app = typer.Typer(
    help="Train, sample and judge energy-based models.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)

INTERRUPTED = 130
LOST = 4


@app.command(epilog="Example: burnin train rings --set scheme.name=noise --out runs/noise")
def train(
    recipe: Annotated[str, typer.Argument(help="A recipe's name (see `burnin recipes`) or a .toml file.")],
    changes: Set = [],  # noqa: B006  (typer copies it)
    out: Annotated[Path | None, typer.Option(help="The run's folder; runs/RECIPE by default.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in --out.")] = False,
    devices: Devices = 1,
    nodes: Nodes = 1,
    strategy: Annotated[
        str, typer.Option(help="Of several processes: ddp, or fsdp, which shares out the weights.")
    ] = "ddp",
    as_json: Annotated[bool, typer.Option("--json", help="Print the outcome as JSON.")] = False,
) -> None:
    """Train a model by a recipe."""
    from burnin.launching import take_part

    config = load_config(recipe, changes)
    folder = out or Path("runs") / Path(recipe).stem
    if resume and not changes:
        config = read_run_config(folder)
    ranks = take_part(devices, nodes, strategy)
    console = make_console(quiet=ranks.rank > 0)
    outcome = run_training(console, folder, config, resume=resume, label=config.title, ranks=ranks)
    if as_json and ranks.rank == 0:
        print(json.dumps(training_summary(folder, outcome), ensure_ascii=False))
    finish(console, folder, outcome)
    console.print(f"trained: {folder}. Next: burnin report {folder}")


@app.command(epilog="Example: burnin sample runs/rings -n 1000000 -o samples.npy")
def sample(
    run: Annotated[Path, typer.Argument(help="A run's folder, or one that was exported.")],
    number: Annotated[int, typer.Option("-n", help="How many samples.")] = 1000,
    output: Annotated[
        Path,
        typer.Option(
            "-o",
            help="Where to: .npy or .csv; of a fitted table .parquet too; of pictures a .png, or a folder.",
        ),
    ] = Path("samples.npy"),
    seed: Annotated[int, typer.Option(help="Seed of the chains.")] = 0,
    steps: Annotated[int, typer.Option(help="Further steps after the chain's own number.")] = 0,
    keep: Annotated[
        Path | None, typer.Option(help="A .npy file for the chains along the further steps, (k, n, dim).")
    ] = None,
    keep_every: Annotated[int, typer.Option(help="Steps between two kept positions.")] = 100,
    block: Annotated[int, typer.Option(help="Chains at a time; memory grows with it, not with -n.")] = 10_000,
    of_class: Annotated[
        str | None, typer.Option("--class", help="Of a classifier (JEM): which class, by name or number.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Write over existing files.")] = False,
    devices: Devices = 1,
    nodes: Nodes = 1,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was written as JSON.")] = False,
) -> None:
    """Draw samples from a trained model, by chains that start at noise; of a table, rows like its own."""
    from burnin.assemble import build_engine
    from burnin.drawing import Request, draw
    from burnin.evaluation.classes import accept_class
    from burnin.interop.sources import open_folder
    from burnin.launching import take_part
    from burnin.rng import Streams
    from burnin.runs import available_cores

    request = Request(number, output, steps, keep, keep_every, block, force)
    ranks = take_part(devices, nodes)
    console = make_console(quiet=ranks.rank > 0)
    threads = max(1, available_cores() // ranks.neighbours)
    opened = open_folder(run, lambda config: build_engine(config, threads=threads, say=console.print), ranks)
    use_threads(opened.config)
    accept = None if of_class is None else accept_class(opened.model, of_class)
    with stages_bar(console) as report:
        outcome = draw(opened.model, request, Streams(seed)["sample"], report, opened.encoding, accept)
    if outcome is not Outcome.OK:
        console.print(f"warning: {outcome.message}")
    console.print(f"{number} samples in {output}")
    if as_json and ranks.rank == 0:
        print(json.dumps({"samples": number, "file": str(output), "outcome": outcome.name}))


@app.command(epilog="Example: burnin diagnose runs/rings")
def diagnose(
    run: Annotated[Path, typer.Argument(help="A run's folder; training may still be under way.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Say how training goes or went: d, r, oscillation, balance, collapse; diagnose.png in the folder."""
    from burnin.diagnostics.words import findings, table_text
    from burnin.report.figures import save
    from burnin.report.training import diagnosis_figure
    from burnin.runs import diagnose_run

    config = read_run_config(run)
    if config.without_chains:
        name = config.objective.name
        raise InputError(f"{run} was trained by {name}, without chains: there is no d or r; see its report")
    diagnosis = diagnose_run(run)
    if not diagnosis.arms:
        raise InputError(f"{run} has no logged update yet (metrics.jsonl is empty or missing)")
    said = findings(diagnosis)
    if as_json:
        print(json.dumps({**diagnosis.as_dict(), "findings": said}, ensure_ascii=False, allow_nan=False))
    else:
        print(table_text(diagnosis), *said, sep="\n")
    save(diagnosis_figure(diagnosis, config.model.temperature), run / "diagnose.png")
    make_console().print(f"picture: {run / 'diagnose.png'}")


@app.command(epilog="Example: burnin report runs/rings")
def report(
    run: Annotated[Path, typer.Argument(help="A run's folder.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print the verdict as JSON.")] = False,
) -> None:
    """Judge a trained model: report.html and report.png in its folder, the verdict."""
    console = make_console()
    answer = write_run_report(console, run)
    print(json.dumps(answer, ensure_ascii=False) if as_json else "\n".join(answer["verdict"]))
    console.print(f"report: {run / 'report.html'}")


@app.command(epilog="Example: burnin check runs/rings --data held-out.csv")
def check(
    run: Annotated[Path, typer.Argument(help="A run's folder.")],
    data: Annotated[
        Path | None, typer.Option(help="Held-out rows (.csv, .npy, .npz, .parquet) to judge it on.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the verdict and its numbers as JSON.")
    ] = False,
) -> None:
    """Say what a trained model is: a density, a generator, both or neither, and why; draws check.png."""
    from dataclasses import asdict

    from burnin.report.check import check_figure
    from burnin.report.figures import save
    from burnin.runs import assess_run, fresh_data, table_for
    from burnin.studies.table import json_safe

    console = make_console()
    config = read_run_config(run)
    use_threads(config)
    held_out = None if data is None else table_for(run, data)
    with stages_bar(console) as status:
        model, result = assess_run(run, status, quiet_engine(config), held_out)
    save(check_figure(model, result, fresh_data(model, config)), run / "check.png")
    if as_json:
        answer = {"verdict": str(result.verdict.standing), "lines": result.verdict.lines}
        print(json.dumps(answer | {"evidence": json_safe(asdict(result.evidence))}, ensure_ascii=False))
    else:
        print("\n".join(result.verdict.lines))
    if held_out is None and config.data.file is not None:
        console.print("judged on the rows it was trained on; give others with --data")
    console.print(f"picture: {run / 'check.png'}")


stein_commands.register(app)
table_commands.register(app)
measure_commands.register(app)
class_commands.register(app)
interop_commands.register(app)
study_commands.register(app)
sweep_commands.register(app)
impute_command.register(app)
data_commands.register(app)


@app.command(epilog="Example: burnin demo")
def demo(
    out: Annotated[Path, typer.Option(help="The demo's folder.")] = Path("runs/demo"),
    changes: Set = [],  # noqa: B006
    as_json: Annotated[bool, typer.Option("--json", help="Print the verdict as JSON.")] = False,
) -> None:
    """Train the hybrid scheme on the 10-D rings for about a minute and judge it."""
    console = make_console()
    config = load_config("demo", changes)
    resume = (out / "config.toml").exists()
    if resume and read_run_config(out).essence() != config.essence():
        raise InputError(f"{out} holds a run with other settings; choose another --out")
    console.print(f"{config.title}: {config.about}")
    finish(console, out, run_training(console, out, config, resume=resume, label="training"))
    written = write_run_report(console, out)
    if as_json:
        print(json.dumps(written, ensure_ascii=False))
    else:
        print("\n".join(written["verdict"]))
    console.print(f"report: {out / 'report.html'}, picture: {out / 'report.png'}")


@app.command(epilog='Example: eval "$(burnin completion bash)"')
def completion(shell: Annotated[str, typer.Argument(help="bash, zsh or fish.")]) -> None:
    """Print a script that makes a shell complete burnin's commands and options."""
    from burnin.completion import completion_script

    print(completion_script(app, shell), end="")


def run_training(
    console: Console, folder: Path, config: Config, *, resume: bool, label: str, ranks: Ranks | None = None
) -> Outcome:
    """Trains with a progress bar; `ranks` are the processes that do it together, one by default."""
    from burnin.assemble import build_engine
    from burnin.assemble_data import fetch_data
    from burnin.ranks import ALONE
    from burnin.runs import available_cores, train_in

    ranks = ranks or ALONE

    use_threads(config)
    with stages_bar(console) as report:
        fetch_data(config, report)
    with training_bar(console, label, config.run.updates, config.run.batch_size) as update:
        return train_in(
            folder,
            config,
            resume=resume,
            on_update=update,
            on_event=lambda text: console.print(f"training: {text}"),
            engine=build_engine(
                config, threads=max(1, available_cores() // ranks.neighbours), say=console.print
            ),
            ranks=ranks,
        )


def training_summary(folder: Path, outcome: Outcome) -> dict[str, object]:
    """What a program may want to know of a training: how it ended, where, and its last numbers."""
    from burnin.training import read_metrics

    rows = [row for row in read_metrics(folder / "metrics.jsonl") if "event" not in row]
    last = rows[-1] if rows else {"step": 0}
    return {"run": str(folder), "outcome": outcome.name, "updates": last["step"], "last": last}


def use_threads(config: Config) -> None:
    """Sets torch's threads for this program, as the configuration says."""
    import torch

    if config.run.threads > 0:
        torch.set_num_threads(config.run.threads)


def quiet_engine(config: Config) -> Engine:
    """How chains are computed when a model is judged: on all cores."""
    from burnin.assemble import build_engine
    from burnin.runs import available_cores

    return build_engine(config, threads=available_cores())


def finish(console: Console, folder: Path, outcome: Outcome) -> None:
    """Ends the program when training was interrupted."""
    if outcome is Outcome.INTERRUPTED:
        console.print(f"{outcome.message} ({folder})")
        raise typer.Exit(INTERRUPTED)


def write_run_report(console: Console, folder: Path) -> dict[str, Any]:
    """Judges a run and writes its report; returns the verdict's lines and all numbers."""
    from burnin.reporting import report_run

    config = read_run_config(folder)
    use_threads(config)
    with stages_bar(console) as status:
        return report_run(folder, status, quiet_engine(config))


def _of_thread(told: threading.ExceptHookArgs) -> None:
    """TensorBoard's thread hands what it could not write to the main one, which tells it in one line."""
    if not isinstance(told.exc_value, OSError):
        threading.__excepthook__(told)


def main() -> None:
    """Runs the program: bad input ends in one line on stderr and exit code 2, divergence in 3."""
    threading.excepthook = _of_thread
    try:
        app()
    except BurninError as error:
        rank = int(os.environ.get("RANK", "0"))
        # Of several processes that notice that one is gone, the first says so.
        if rank == 0 or error.exit_code != LOST:
            name = "burnin" if rank == 0 else f"burnin (process {rank})"
            print(f"{name}: {harmless(str(error))}", file=sys.stderr, flush=True)
        if error.exit_code == LOST:
            os._exit(LOST)  # torch would wait for the process that is gone
        sys.exit(error.exit_code)
    except OSError as error:
        print(f"burnin: {harmless(str(error))}", file=sys.stderr)
        sys.exit(BurninError.exit_code)
    except KeyboardInterrupt:
        print("burnin: interrupted", file=sys.stderr)
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()
