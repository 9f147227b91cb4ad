"""Statistical trust: ranks of samplers on known densities; how often tests reject models that are right."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, cast, get_args

import torch
from pydantic import Field
from torch import Tensor

from burnin import discrepancies
from burnin.core import Report
from burnin.discrepancies import (
    METHODS,
    CriticSettings,
    KernelSettings,
    Method,
    Points,
    evaluate_scores,
    learn,
)
from burnin.discrepancies.ranking import holm
from burnin.rng import Streams, derive_seed
from burnin.settings import Count, Part
from burnin.studies.calibration_subjects import (
    STATISTICS,
    Chain,
    Known,
    Population,
    T,
    Target,
    known,
    statistics_of,
    walk,
)
from burnin.studies.measured import MeasuredRecipe, MeasuredStudy
from burnin.studies.ranks import along_both_ways, binomial_range, rank_among, uniformity
from burnin.studies.table import Rows

Subject = Literal[Chain, Population, Method]
POPULATIONS = get_args(Population)
CONTROLS = ("langevin-coarse", "cooled-mala")
"""Chains that are known to be wrong: what finds nothing here would find nothing anywhere."""
WORDS: dict[str, str] = {
    "langevin": "Langevin, small step",
    "langevin-coarse": "Langevin, large step (control)",
    "mala": "MALA",
    "hmc": "HMC",
    "gibbs": "Gibbs",
    "annealed-mala": "Annealed, MALA, resampled",
    "annealed-hmc": "Annealed, HMC, resampled",
    "cooled-mala": "Annealed, MALA, not resampled (control)",
    "ksd": "KSD, all pairs",
    "lksd": "KSD, linear time",
    "fssd": "FSSD",
    "lsd": "LSD",
    "gaussian": "Gaussian, 10-D",
    "mixture": "two Gaussians, 2-D",
    "funnel": "funnel, 5-D",
    "machine": "RBM, 6 + 4 units",
    "wide-machine": "RBM, 4 + 6 units",
    "modes": "two far modes, 2-D",
}
LEVELS = (0.01, 0.05, 0.1)


class SubjectPart(Part):
    """Which sampler or test, on which density."""

    name: Subject = "mala"
    target: Target = "gaussian"


class RanksPart(Part):
    """Of samplers: `others` along a chain or drawn beside its end, `thin` steps between two of them.

    `arrives`: steps of chains from noise, whose ends are ranked among exact draws; 0 leaves that out.
    `stays`: whether exact draws are ranked along the chains that start at them; for reversible chains.
    A population has `chains`, one of which is ranked.
    """

    others: Count = 19
    thin: Count = 5
    stays: bool = True
    arrives: Annotated[int, Field(ge=0)] = 1000
    chains: Count = 400


class TestPart(Part):
    """Of goodness-of-fit tests: rows of data in a trial; critics trained `together`, and their training.

    The `bandwidth` is of the kernel tests; "optimised" is their own choice.
    """

    points: Annotated[int, Field(ge=50)] = 500
    together: Count = 50
    width: Count = 100
    iterations: Count = 200
    bandwidth: Literal["optimised", "median"] = "optimised"


class CalibrationRecipe(MeasuredRecipe):
    """A sampler or a test, repeated."""

    subject: SubjectPart = SubjectPart()
    repetitions: Annotated[int, Field(ge=20)] = 1000
    ranks: RanksPart = RanksPart()
    test: TestPart = TestPart()


def measure(recipe: CalibrationRecipe, report: Report) -> dict[str, Any]:
    """The ranks of a sampler's repetitions, or the p values of a test's."""
    name, target = recipe.subject.name, recipe.subject.target
    streams = Streams(derive_seed(recipe.run.seed, f"{name} on {target}"))  # no two rows share a draw
    head = {"subject": name, "target": target, "repetitions": recipe.repetitions}
    if name in METHODS:
        p_values = null_p_values(recipe, name, known(target), streams, report)
        places = (p_values * 20).long().clamp_max(19)
        found = uniformity(places, 20, streams["ties"])
        rejected = {f"{level:g}": int((p_values <= level).sum()) for level in LEVELS}
        return head | {"rejected": rejected, "counts": found["counts"], "p": found["p"]}
    ranks, acceptance = sampler_ranks(recipe, cast(Chain | Population, name), streams, report)
    tests = {
        kind: uniformity(rank, recipe.ranks.others + 1, streams[f"spread {kind}"])
        for kind, rank in ranks.items()
    }
    return head | {"acceptance": acceptance, "tests": tests}


def sampler_ranks(
    recipe: CalibrationRecipe, name: Chain | Population, streams: Streams, report: Report
) -> tuple[dict[str, Tensor], float]:
    """A rank for every repetition, by what is done and what is ranked; and the mean acceptance."""
    target, ranks, law = recipe.subject.target, recipe.ranks, known(recipe.subject.target)
    n, ties, draws = recipe.repetitions, streams["ties"], streams["draws"]
    found, acceptance = {}, 1.0
    if name in POPULATIONS:
        ends = torch.stack([_population_end(recipe, name, law, streams, i, report) for i in range(n)])
        return _ranked("arrives", ends, _exact(law, ranks.others, n, draws), law, ties), acceptance
    if ranks.stays:
        report("chains from exact draws", 0, 2)
        start = law.draw(n, draws)
        ways = []
        for way in ("forth", "back"):
            kept, acceptance = walk(name, target, start, streams[way], records=ranks.others, thin=ranks.thin)
            ways.append(statistics_of(kept, law.energy))
        taken = torch.randint(ranks.others + 1, (n,), generator=ties)
        for statistic, value in statistics_of(start, law.energy).items():
            others = along_both_ways(ways[0][statistic], ways[1][statistic], taken)
            found[f"stays {statistic}"] = rank_among(value, others, ties)
    if ranks.arrives:
        report("chains from noise", 1, 2)
        noise = law.spread * torch.randn(n, law.dim, generator=streams["noise"], dtype=torch.float64)
        kept, acceptance = walk(name, target, noise, streams["arrive"], records=1, thin=ranks.arrives)
        found |= _ranked("arrives", kept[0], _exact(law, ranks.others, n, draws), law, ties)
    return found, acceptance


def _population_end(
    recipe: CalibrationRecipe,
    name: Chain | Population,
    law: Known,
    streams: Streams,
    index: int,
    report: Report,
) -> Tensor:
    """The end of one chain of a population of its own: which one, is drawn."""
    chains, stream = recipe.ranks.chains, streams["populations"]
    report("populations", index, recipe.repetitions)
    noise = law.spread * torch.randn(chains, law.dim, generator=stream, dtype=torch.float64)
    kept, _ = walk(name, recipe.subject.target, noise, stream, records=1, thin=recipe.ranks.arrives)
    return kept[0, torch.randint(chains, (), generator=stream)]


def _exact(law: Known, others: int, n: int, generator: torch.Generator) -> Tensor:
    return law.draw(others * n, generator).reshape(others, n, -1)


def _ranked(what: str, ends: Tensor, exact: Tensor, law: Known, ties: torch.Generator) -> dict[str, Tensor]:
    values, others = statistics_of(ends, law.energy), statistics_of(exact, law.energy)
    return {f"{what} {name}": rank_among(values[name], others[name], ties) for name in STATISTICS}


def null_p_values(
    recipe: CalibrationRecipe, method: Method, law: Known, streams: Streams, report: Report
) -> Tensor:
    """P values of a test on data of the very model that is tested, (repetitions,)."""
    number, points = recipe.repetitions, recipe.test.points
    data, draws = streams["data"], streams[method]
    found: list[float] = []
    if method != "lsd":
        kernel = KernelSettings(bandwidth=recipe.test.bandwidth)
        while len(found) < number:
            report("trials", len(found), number)
            x = law.draw(points, data)
            found.append(
                discrepancies.test(
                    law.energy, x, method, generator=draws, temperature=T, kernel=kernel
                ).p_value
            )
        return torch.tensor(found, dtype=torch.float64)
    settings = CriticSettings(
        width=recipe.test.width,
        iterations=recipe.test.iterations,
        validate_every=10,
        batch_size=200,
        patience=5,
    )
    while len(found) < number:
        report("trials", len(found), number)
        trials = min(recipe.test.together, number - len(found))
        x = law.draw(trials * points, data)
        shape = (trials, points, x.shape[1])
        both = Points(x.float().reshape(shape), evaluate_scores(law.energy, x, T).float().reshape(shape))
        found += learn(both, settings, draws, objective="power").p_value.tolist()
    return torch.tensor(found, dtype=torch.float64)


def pool(rows: Rows) -> dict[str, dict[str, Any]]:
    """What the recipe's expectations are about.

    - `samplers`: how many rank tests there are, how many have p ≤ 0.05, and the smallest p by Holm's
      correction for their number.
    - `controls`: the largest of the smallest p of each chain that is known to be wrong.
    - `tests`: how many there are, how many rates of rejection at 5% lie outside of the 95% and the 99% range.
    """
    p_values, wrong, rates = [], [], []
    for row in rows.values():
        if "tests" not in row:
            rates.append(_rate(row))
        elif row["subject"] in CONTROLS:
            wrong.append(min(test["p"] for test in row["tests"].values()))
        else:
            p_values += [test["p"] for test in row["tests"].values()]
    pooled: dict[str, dict[str, Any]] = {}
    if p_values:
        pooled["samplers"] = {
            "number": len(p_values),
            "below_level": sum(p <= 0.05 for p in p_values),
            "smallest": min(holm(p_values)),
        }
    if wrong:
        pooled["controls"] = {"number": len(wrong), "largest": max(wrong)}
    if rates:
        pooled["tests"] = {
            "number": len(rates),
            "outside_95": sum(not inside for _, inside, _ in rates),
            "outside_99": sum(not inside for _, _, inside in rates),
        }
    return pooled


def _rate(row: Mapping[str, Any]) -> tuple[int, bool, bool]:
    """Rejections at 5%, and whether they lie in their 95% and 99% range."""
    count = row["rejected"]["0.05"]
    inside = []
    for level in (0.95, 0.99):
        low, high = binomial_range(row["repetitions"], 0.05, level)
        inside.append(low <= count <= high)
    return count, inside[0], inside[1]


def summary(rows: Rows) -> str:
    """The samplers' p values, the tests' rates, and both in sentences."""
    lines = []
    if ranks := [_sampler_line(row) for row in rows.values() if "tests" in row]:
        kinds = [f"{what}: {words}" for what in ("stays", "arrives") for words in STATISTICS.values()]
        lines = [f"| sampler | density | acceptance | {' | '.join(kinds)} |", "|---" * 9 + "|", *ranks]
    judged = [row for row in rows.values() if "tests" not in row]
    if judged:
        number = judged[0]["repetitions"]
        narrow, wide = (binomial_range(number, 0.05, level) for level in (0.95, 0.99))
        lines += ["", "| test | density | " + " | ".join(f"rejects at {level:.0%}" for level in LEVELS)]
        lines[-1] += " | in the 95% range | in the 99% range | p values uniform: p |"
        lines += ["|---" * 8 + "|"] + [_test_line(row) for row in judged]
        lines += [
            "",
            f"{number:,} repetitions each; at a level of 5% between {narrow[0]} and {narrow[1]} of them "
            f"reject with a probability of 95%, between {wide[0]} and {wide[1]} with 99%.",
        ]
    if ranked := pool(rows).get("samplers"):
        lines += [
            "",
            f"Of {ranked['number']} rank tests of samplers {ranked['below_level']} have p ≤ 0.05; the "
            f"smallest p is {ranked['smallest']:.2g} when corrected for their number (Holm).",
        ]
    return "\n".join(lines) + "\n"


def _sampler_line(row: Mapping[str, Any]) -> str:
    kinds = [f"{what} {name}" for what in ("stays", "arrives") for name in STATISTICS]
    cells = [f"{row['tests'][kind]['p']:.2g}" if kind in row["tests"] else "" for kind in kinds]
    share = f"{row['acceptance']:.2f}" if row["acceptance"] < 1 else ""
    return f"| {WORDS[row['subject']]} | {WORDS[row['target']]} | {share} | {' | '.join(cells)} |"


def _test_line(row: Mapping[str, Any]) -> str:
    _, narrow, wide = _rate(row)
    rates = [f"{row['rejected'][f'{level:g}'] / row['repetitions']:.1%}" for level in LEVELS]
    yes = ["yes" if inside else "**no**" for inside in (narrow, wide)]
    cells = [WORDS[row["subject"]], WORDS[row["target"]], *rates, *yes, f"{row['p']:.2g}"]
    return f"| {' | '.join(cells)} |"


def _rows() -> dict[str, list[str]]:
    """A row for each sampler and each test on each of its densities."""
    # A chain that is not reversible, with a step so small that it needs more of them.
    one_way, both = ["ranks.stays=false", "ranks.arrives=4000"], list[str]()
    only_stays = ["ranks.arrives=0"]
    pairs: list[tuple[Chain | Population, Target, list[str]]] = [
        *((chain, target, both) for chain in ("mala", "hmc") for target in ("gaussian", "mixture")),
        *((chain, "funnel", only_stays) for chain in ("mala", "hmc")),
        ("gibbs", "machine", both),
        ("gibbs", "wide-machine", both),
        *(("langevin", target, one_way) for target in ("gaussian", "mixture")),
        ("langevin-coarse", "gaussian", one_way),
        ("langevin-coarse", "mixture", one_way),
        *((chain, "modes", ["ranks.arrives=150"]) for chain in POPULATIONS),
    ]
    rows = {
        f"{chain}-{target}": [f"subject.name={chain}", f"subject.target={target}", *changes]
        for chain, target, changes in pairs
    }
    for method in METHODS:
        for target in ("gaussian", "mixture", "machine"):
            # A tenth of the points is all that LSD tests with: it gets more.
            more = ["test.points=1000", "test.width=50", "test.iterations=100"] if method == "lsd" else []
            rows[f"{method}-{target}"] = [f"subject.name={method}", f"subject.target={target}", *more]
    return rows


CALIBRATION = MeasuredStudy(
    name="calibration",
    about="ranks of every sampler on known densities, and how often every test rejects a model that is right",
    recipe="measured/calibration",
    quick_recipe="measured/calibration-quick",
    settings=CalibrationRecipe,
    rows=_rows(),
    quick_rows=("mala-mixture", "hmc-gaussian", "gibbs-machine", "langevin-coarse-gaussian", "lksd-mixture"),
    metrics=("number", "smallest", "largest", "outside_95", "outside_99"),
    measure=measure,
    pool=pool,
    pooled=("samplers", "controls", "tests"),
    draw=None,
    tabulate=summary,
)
