"""The commands `features train`, `ood` and `measure`: pictures and energies beside real data, in numbers."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from burnin.core import InputError, Outcome
from burnin.terminal import make_console, stages_bar

if TYPE_CHECKING:
    from burnin.evaluation.model import Model

CHAINS, STEPS = 200, 500
SAMPLES_SHOWN = 8
Seed = Annotated[int, typer.Option(help="Seed of all that is drawn.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print all numbers as JSON.")]


def register(app: typer.Typer) -> None:
    """Adds the commands to the program."""
    features = typer.Typer(
        help="Networks whose features pictures are compared by.", no_args_is_help=True, add_completion=False
    )
    features.command("train", epilog="Example: burnin features train --dataset fashion-mnist --side 14")(
        train_features
    )

    # With a single command of its own, a group would vanish into it.
    @features.callback()
    def group() -> None:
        """Networks whose features pictures are compared by."""

    app.add_typer(features, name="features")
    app.command("ood", epilog="Example: burnin ood runs/digits --inside digits8 --outside mnist")(tell_apart)
    app.command("measure", epilog="Example: burnin measure runs/digits --features pixels")(measure_run)


def train_features(
    dataset: Annotated[
        str, typer.Option(help="A labelled set: digits8, mnist, fashion-mnist.", show_default=False)
    ],
    side: Annotated[int | None, typer.Option(help="Pixels along a side; the set's own by default.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="Its folder; features/DATASET-SIDE by default, where `own` looks.")
    ] = None,
    updates: Annotated[int, typer.Option(help="Batches of 128 pictures.")] = 2000,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Train a small classifier, whose features and classes stand in where there is no Inception network."""
    from burnin.data.labels import load_labelled
    from burnin.evaluation.classifier import CONFIG_FILE, WEIGHTS_FILE, require_free
    from burnin.evaluation.classifier_training import train_classifier
    from burnin.feature_choice import features_folder

    console, start = make_console(), time.monotonic()
    data = load_labelled(dataset, side)
    folder = out or features_folder(dataset, data.pixels.shape[2])
    require_free(folder)
    with stages_bar(console) as report:
        made = train_classifier(
            data,
            updates=updates,
            seed=seed,
            on_update=lambda step, _: report("training the classifier", step, updates),
        )
    made.save(folder)
    seconds = time.monotonic() - start
    answer = {"name": made.name, "accuracy": made.accuracy, "test_pictures": len(data.test_labels)}
    if as_json:
        print(json.dumps(answer | {"folder": str(folder), "updates": updates, "seconds": round(seconds, 1)}))
    else:
        print(f"{made.name}: right on {made.accuracy:.1%} of {len(data.test_labels)} test pictures")
    console.print(
        f"features: {folder} ({WEIGHTS_FILE}, {CONFIG_FILE}), {seconds:.0f} s. Next: burnin measure RUN "
        f"--features {folder}",
        markup=False,
    )


def tell_apart(
    run: Annotated[Path, typer.Argument(help="A run's folder.")],
    inside: Annotated[
        str,
        typer.Option(
            help="What is usual: a data set's name, a folder of pictures or a file of rows.",
            show_default=False,
        ),
    ],
    outside: Annotated[str, typer.Option(help="What is to be told from it, likewise.", show_default=False)],
    seed: Seed = 0,
    out: Annotated[
        Path | None, typer.Option(help="The figure, a .png; ood.png in the run by default.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say how well a model's energies tell two data sets apart: AUROC, AUPR, FPR@95; draws ood.png."""
    from burnin.evaluation.energy_bands import energies_of
    from burnin.evaluation.outliers import separation
    from burnin.given_data import open_set
    from burnin.report.figures import save
    from burnin.report.separation import separation_figure

    console, figure = make_console(), out or run / "ood.png"
    if figure.suffix != ".png":
        raise InputError(f"the figure {figure} must end in .png")
    model = load_run(run)
    with stages_bar(console) as report:
        sets = [open_set(given, model, run, seed=seed, report=report) for given in (inside, outside)]
        energies = [energies_of(model, given.rows).numpy() for given in sets]
    found = separation(*energies, seed=seed)
    names = [given.name for given in sets]
    rows = {
        "AUROC": found.auroc,
        "AUPR, outliers sought": found.aupr_outside,
        "AUPR, inside sought": found.aupr_inside,
        "FPR@95": found.fpr95,
    }
    if as_json:
        answer: dict[str, Any] = {
            "inside": {"name": names[0], "n": found.inside},
            "outside": {"name": names[1], "n": found.outside},
            "threshold": found.threshold,
        }
        numbers = {name: {"value": one.value, "error": one.error} for name, one in rows.items()}
        print(json.dumps(answer | numbers | {"figure": str(figure)}, ensure_ascii=False, allow_nan=False))
    else:
        print(f"energies of {names[0]} (inside) and of {names[1]} (outside)")
        print(*(f"{name:<22} {one.value:.4f} ± {one.error:.4f}" for name, one in rows.items()), sep="\n")
    save(separation_figure(energies[0], energies[1], found, names[0], names[1]), figure)
    console.print(f"picture: {figure}", markup=False)


def measure_run(
    run: Annotated[Path, typer.Argument(help="A run's folder; its model must be one of pictures.")],
    data: Annotated[
        str | None,
        typer.Option(
            help="What to compare with: a data set or a folder of pictures; the run's own by default."
        ),
    ] = None,
    features: Annotated[
        str,
        typer.Option(
            help="own (see `burnin features train`), pixels, inception, a TorchScript file or a folder."
        ),
    ] = "own",
    samples: Annotated[int, typer.Option(help="How many samples, and real pictures, at most.")] = 2000,
    searched: Annotated[
        int | None,
        typer.Option(help="Training pictures that are searched for copies; all, or --samples for inception."),
    ] = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Measure samples: Fréchet distance, KID, Inception Score, precision, recall, coverage, memorisation."""
    from burnin.evaluation import chains
    from burnin.evaluation.energy_bands import energies_of, energy_bands
    from burnin.evaluation.features import Inception
    from burnin.feature_choice import open_features
    from burnin.given_data import own_pictures, real_pictures, sampled_bytes
    from burnin.measuring import measure, require_enough
    from burnin.report.energy_bands import energies_figure
    from burnin.report.figures import save
    from burnin.report.neighbours import neighbours_figure
    from burnin.rng import Streams

    console, streams, start = make_console(), Streams(seed), time.monotonic()
    require_enough(samples, samples)
    _, config = own_pictures(run)
    network = open_features(features, config)
    model = load_run(run)
    if searched is None and isinstance(network, Inception):
        searched = samples
    with stages_bar(console) as report:
        real, name = real_pictures(
            run, data, model, samples=samples, searched=searched, streams=streams, report=report
        )
        require_enough(samples, len(real.reference))
        drawn = chains.from_noise(
            model,
            samples,
            streams["samples"],
            progress=lambda done, *_: report("samples from noise", done, model.own.num_steps),
        )
        pixels = sampled_bytes(model, drawn.position)
        found = measure(pixels, real, network, seed=seed, report=report)
        bands = energy_bands(
            model, CHAINS, STEPS, {"noise": streams["band-noise"], "data": streams["band-data"]}, report
        )
    if drawn.result.outcome is not Outcome.OK:
        console.print(f"warning: {drawn.result.outcome.message}")
    seconds = time.monotonic() - start
    if as_json:
        answer: dict[str, Any] = {"run": str(run), "features": network.name, "reference": name}
        answer |= {"measures": [one.as_dict() for one in found.measures], "seconds": round(seconds, 1)}
        print(json.dumps(answer, ensure_ascii=False, allow_nan=False))
    else:
        print(f"{samples} samples of {run} beside {name}")
        print(*(one.line() for one in found.measures), sep="\n")
    held = model.data.sample(len(real.reference), streams["level"])
    level = energies_of(model, held)
    save(energies_figure(bands, level, model.own.num_steps), run / "energies.png")
    drawn_figures = [run / "energies.png"]
    ways = (("pixels", found.by_pixels), (network.name, found.by_features))
    looked = {way: one.neighbours for way, one in ways if one is not None}
    if looked:
        save(neighbours_figure(pixels, real.training, looked, SAMPLES_SHOWN), run / "neighbours.png")
        drawn_figures.append(run / "neighbours.png")
    console.print(f"pictures: {', '.join(map(str, drawn_figures))}; {seconds:.0f} s", markup=False)


def load_run(run: Path) -> Model:
    """The run's model; torch runs on as many threads as the run says."""
    import torch

    from burnin.assemble import build_engine, load_model
    from burnin.config import read_run_config
    from burnin.runs import available_cores

    config = read_run_config(run)
    if config.run.threads > 0:
        torch.set_num_threads(config.run.threads)
    return load_model(run, build_engine(config, threads=available_cores()))
