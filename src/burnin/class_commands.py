"""The command `classify`: what a joint energy says of classes, and how far that can be believed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from burnin.core import InputError
from burnin.measure_commands import AsJson, Seed, load_run
from burnin.terminal import make_console, stages_bar

if TYPE_CHECKING:
    from burnin.evaluation.model import Model

ATTACKED = 500
"""Pictures that are attacked, at most."""


def register(app: typer.Typer) -> None:
    """Adds the command to the program."""
    app.command("classify", epilog="Example: burnin classify runs/jem-digits --outside mnist")(classify)


def classify(
    run: Annotated[Path, typer.Argument(help="A run's folder; trained with labels (a [joint] section).")],
    data: Annotated[
        str | None,
        typer.Option(
            help="Pictures to classify, a data set or a folder; without it, what is held out judges it."
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", help="Of --data: a .csv of classes, probabilities and energies.")
    ] = None,
    outside: Annotated[
        str | None, typer.Option(help="A data set or folder of outliers, to be told by energy.")
    ] = None,
    attack: Annotated[
        bool, typer.Option("--attack", help="Also mislead it, by PGD within ℓ∞ balls.")
    ] = False,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Classify pictures; or say how right, calibrated and robust a classifier is, with classes.png."""
    from burnin.energies import joint_of

    model = load_run(run)
    joint_of(model.energy)  # refused here, before anything takes time
    if data is not None:
        _predict(run, model, data, output, seed, as_json)
        return
    if output is not None:
        raise InputError("-o is for the classes of --data; give both, or neither")
    _judge(run, model, outside, attack, seed, as_json)


def _predict(run: Path, model: Model, data: str, output: Path | None, seed: int, as_json: bool) -> None:
    import numpy as np

    from burnin.data import Frame, save_frame
    from burnin.evaluation.calibration import class_probabilities
    from burnin.evaluation.classes import class_names
    from burnin.evaluation.energy_bands import energies_of
    from burnin.given_data import open_set

    console, output = make_console(), output or Path("classes.csv")
    with stages_bar(console) as report:
        given = open_set(data, model, run, seed=seed, report=report)
        chances = class_probabilities(model.energy, given.rows)
        energies = energies_of(model, given.rows)
    sure, chosen = chances.max(1)
    names = class_names(model, chances.shape[1])
    frame = Frame(
        {
            "class": np.array([names[k] for k in chosen.tolist()], dtype=object),
            "probability": sure.double().numpy(),
            "energy/T": energies.double().numpy(),
        }
    )
    save_frame(frame, output)
    counts = {name: int((chosen == k).sum()) for k, name in enumerate(names)}
    if as_json:
        print(
            json.dumps({"file": str(output), "pictures": len(chosen), "counts": counts}, ensure_ascii=False)
        )
    else:
        print(*(f"{name:<16} {count}" for name, count in counts.items()), sep="\n")
    console.print(f"{len(chosen)} classes in {output}", markup=False)


def _judge(run: Path, model: Model, outside: str | None, attack: bool, seed: int, as_json: bool) -> None:
    from burnin.energies import joint_of
    from burnin.evaluation.attack import robust_accuracy
    from burnin.evaluation.calibration import class_probabilities
    from burnin.evaluation.classes import classify_held_out
    from burnin.evaluation.energy_bands import energies_of
    from burnin.evaluation.outliers import separation
    from burnin.given_data import open_set
    from burnin.report.classes import RADII, classes_figure
    from burnin.report.figures import save
    from burnin.rng import Streams

    console, streams, few = make_console(), Streams(seed), slice(0, ATTACKED)
    answer: dict[str, Any] = {"run": str(run)}
    with stages_bar(console) as report:
        report("classes", 0, 1)
        held = classify_held_out(model, streams["dequantise"])
        found = held.found
        lines = {
            "accuracy": found.accuracy,
            "cross-entropy, nats": found.cross_entropy,
            "calibration error": found.ece,
        }
        if outside is not None:
            given = open_set(outside, model, run, seed=seed, report=report)
            sets = (held.rows, given.rows)
            energies = [energies_of(model, rows).double().numpy() for rows in sets]
            doubts = [
                1 - class_probabilities(model.energy, rows).double().max(1).values.numpy() for rows in sets
            ]
            lines[f"AUROC of {given.name} by energy"] = separation(*energies, seed=seed).auroc
            lines[f"AUROC of {given.name} by 1 - max p"] = separation(*doubts, seed=seed).auroc
        curve = None
        if attack:
            report("attacks", 0, 1)
            low, high = held.pictures.low, held.pictures.high
            radii = [radius if held.pictures.logit else radius * (high - low) / 2 for radius in RADII]
            curve = robust_accuracy(
                joint_of(model.energy).logits,
                held.rows[few],
                held.labels[few],
                radii,
                streams["attack"],
                bounds=None if held.pictures.logit else (low, high),
            )
            answer["attack"] = {"radii": radii, "accuracy": curve}
    answer |= {"pictures": len(held.labels), "calibration error by chance": found.ece_by_chance}
    answer |= {name: {"value": one.value, "error": one.error} for name, one in lines.items()}
    if as_json:
        print(json.dumps(answer, ensure_ascii=False))
    else:
        print(f"{len(held.labels)} pictures that training has not seen")
        print(*(f"{name:<34} {one.value:.4f} ± {one.error:.4f}" for name, one in lines.items()), sep="\n")
        print(f"{'calibration error by chance alone':<34} {found.ece_by_chance:.4f}")
        if curve is not None:
            said = ", ".join(f"{share:.3f} at {r:g}" for r, share in zip(radii, curve, strict=True))
            print(f"accuracy under attack: {said}")
    save(classes_figure(held, curve), run / "classes.png")
    console.print(f"picture: {run / 'classes.png'}", markup=False)
