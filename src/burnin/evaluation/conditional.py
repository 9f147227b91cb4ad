"""Rows with gaps completed by chains of a model's conditional law, p(missing | known) ∝ exp(-E/T).

Three kinds of moves take turns, each of which leaves the conditional law as it is (gaps.py: the coordinates):

- Langevin steps with a Metropolis check (MALA), which explore around where a chain is;
- a leap: the chain's place and some fresh draws from the Gaussian guide are weighted by density over the
  density that they were drawn from, and one is chosen by weight (iterated sampling importance resampling,
  Andrieu et al. 2010; with local moves between them, Samsonov et al. 2022), which brings every mode its mass;
- a swap of two words: the coordinates of a missing word reflected so that two corners change places.

The first leap is among fresh draws alone: a chain's start is the best of several.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from burnin.core import Energy, InputError
from burnin.evaluation.gaps import Chart, Gaps, Guide, Words
from burnin.samplers import MALA, Engine, TargetAcceptance, run

FIRST_STEP, RATE = 0.3, 0.5
SPREAD = 1.3
"""Of fresh draws, in standard deviations of the guide: wider, so that weights stay bounded."""
TRIES = tuple(SPREAD * 2.0**power for power in (1, -1, 2, -2, 3, -3, 4, 6))
"""Spreads of further first draws, where all lie beyond a wall: wide ones reach far, narrow ones less."""
MOST_LEAPT = 30
"""Free coordinates beyond which fresh draws are hopeless, and are only made for the start."""
MOST_NUMBERS = 2**22
"""Numbers in the maps of chains that run together."""


@dataclass(frozen=True)
class Effort:
    """How long chains are.

    Attributes:
        rounds: of a leap, swaps and steps; the first half is left out.
        steps: Langevin steps in a round.
        tries: draws that a leap chooses among.
    """

    rounds: int = 40
    steps: int = 10
    tries: int = 16

    def __post_init__(self) -> None:
        if self.rounds < 2 or self.steps < 1 or self.tries < 2:
            raise InputError(
                f"rounds, steps and tries are {self.rounds}, {self.steps} and {self.tries}; "
                "they must be at least 2, 1 and 2"
            )


@dataclass(frozen=True, eq=False)
class Completed:
    """Rows without gaps.

    Attributes:
        last: where each chain ended, (n, dim): a draw of each row.
        kept: where it was after each round of the second half, (k, n, dim).
        acceptance: of the Langevin steps of the second half.
        leapt: share of leaps of the second half that ended at a fresh draw; NaN where there were none.
    """

    last: Tensor
    kept: Tensor
    acceptance: float
    leapt: float


def complete(
    energy: Energy,
    temperature: float,
    gaps: Gaps,
    guide: Guide,
    *,
    generator: torch.Generator,
    effort: Effort | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Completed:
    """One chain for each row; repeat a row for several draws.

    Arguments:
        energy: E(x).
        temperature: T.
        gaps: what is known of the rows.
        guide: a Gaussian near the law of all coordinates: only how fast chains move depends on it.
        generator: of the chains.
        effort: how long they are.
        progress: told how many rows' rounds are done, and of how many.

    Example:
        >>> energy = lambda x: 0.5 * (x[:, 0] - x[:, 1]).square() / 0.01 + 0.5 * x[:, 0].square()
        >>> gaps = Gaps.of(torch.tensor([[2.0, math.nan]]).repeat(500, 1))  # then x₂ ~ N(2, 0.1²)
        >>> guide = Guide(torch.zeros(2), torch.ones(2))
        >>> drawn = complete(energy, 1.0, gaps, guide, generator=torch.Generator().manual_seed(0)).last
        >>> drawn[:, 0].unique(), round(drawn[:, 1].mean().item(), 1), round(drawn[:, 1].std().item(), 1)
        (tensor([2.]), 2.0, 0.1)
    """
    effort = effort or Effort()
    n, dim = gaps.value.shape
    if n == 0:
        nothing = gaps.value
        return Completed(nothing, nothing.expand(effort.rounds // 2, 0, dim), math.nan, math.nan)
    each = dim * dim if guide.precision.dim() == 2 else dim
    size = max(1, MOST_NUMBERS // (each * effort.tries))
    parts: list[Completed] = []
    for index in torch.split(torch.arange(n), size):
        chart = Chart(gaps.rows(index), guide, energy, temperature)
        before = int(index[0])

        def told(round_number: int, before: int = before, rows: int = len(index)) -> None:
            if progress is not None:
                progress(before * effort.rounds + rows * round_number, n * effort.rounds)

        try:
            parts.append(_run(chart, effort, generator, told))
        except NoStartError as error:
            raise NoStartError(before + error.row) from None
    share = torch.tensor([len(part.last) / n for part in parts], dtype=torch.float64)
    return Completed(
        last=torch.cat([part.last for part in parts]),
        kept=torch.cat([part.kept for part in parts], 1),
        acceptance=float(share @ torch.tensor([part.acceptance for part in parts], dtype=torch.float64)),
        leapt=float(share @ torch.tensor([part.leapt for part in parts], dtype=torch.float64)),
    )


class NoStartError(InputError):
    """No draw of a row's missing values is possible; `row` counts from 0."""

    def __init__(self, row: int) -> None:
        super().__init__(f"row {row + 1}: no possible value within its bounds was found; loosen them")
        self.row = row


def _run(chart: Chart, effort: Effort, generator: torch.Generator, told: Callable[[int], None]) -> Completed:
    half = effort.rounds // 2
    sampler = MALA(FIRST_STEP, 1.0, TargetAcceptance(0.574, until=half * effort.steps, rate=RATE))
    u = _start(chart, effort.tries, generator)
    leaps = int(chart.gaps.free.sum(1).max()) <= MOST_LEAPT
    missing = [column for column in chart.gaps.words if bool((column.level < 0).any())]
    state, engine = sampler.init(chart, u), Engine("never")
    kept, accepted, leapt = [], 0.0, 0.0
    for number in range(effort.rounds):
        u = state.position
        for column in missing:
            u = _swap(chart, column, u, generator)
        fresh = 0.0
        if leaps:
            u, fresh = _leap(chart, u, effort.tries, generator)
        state = replace(sampler.init(chart, u), step_size=state.step_size, iteration=state.iteration)
        result = run(sampler, chart, state, num_steps=effort.steps, generator=generator, engine=engine)
        state = result.state
        if number >= half:
            kept.append(chart.positions(state.position))
            accepted, leapt = accepted + result.acceptance, leapt + fresh
        told(number + 1)
    count = len(kept)
    return Completed(kept[-1], torch.stack(kept), accepted / count, leapt / count if leaps else math.nan)


def _start(chart: Chart, tries: int, generator: torch.Generator) -> Tensor:
    """The best of some draws for each row, by weight."""
    u, _ = _choose(chart, torch.zeros_like(chart.gaps.value), tries, SPREAD, generator, keep=False)
    for spread in TRIES:
        lost = (~chart(u).isfinite()).nonzero().flatten()
        if not len(lost):
            return u
        u[lost], _ = _choose(chart.rows(lost), u[lost], tries, spread, generator, keep=False)
    lost = (~chart(u).isfinite()).nonzero().flatten()
    if len(lost):
        raise NoStartError(int(lost[0]))
    return u


def _leap(chart: Chart, u: Tensor, tries: int, generator: torch.Generator) -> tuple[Tensor, float]:
    """One leap of every chain, and the share of those that ended at a fresh draw."""
    chosen, fresh = _choose(chart, u, tries, SPREAD, generator, keep=True)
    return chosen, fresh.double().mean().item()


def _choose(
    chart: Chart, u: Tensor, tries: int, spread: float, generator: torch.Generator, *, keep: bool
) -> tuple[Tensor, Tensor]:
    """One of `tries` places for each row by its weight, the present one among them if it is kept."""
    n, number = len(u), tries - 1 if keep else tries
    index = torch.arange(n).repeat_interleave(number)
    many = chart.rows(index)
    with torch.no_grad():
        drawn, log_drawn = many.draw(u[index], spread, generator)
        weight = (-many(drawn) - log_drawn).reshape(n, number)
        if keep:
            own = -chart(u) - chart.log_drawn(u, spread)
            weight = torch.cat([weight, own[:, None]], 1)
    weight = weight.double().nan_to_num(-math.inf, posinf=-math.inf)
    weight[weight.isneginf().all(1)] = 0.0  # a first draw of which none is possible: any
    picked = torch.multinomial(weight.softmax(1), 1, generator=generator).squeeze(1)
    fresh = picked < number
    places = drawn.reshape(n, number, -1)[torch.arange(n), picked.clamp(max=number - 1)]
    return torch.where(fresh[:, None], places, u), fresh


def _swap(chart: Chart, column: Words, u: Tensor, generator: torch.Generator) -> Tensor:
    """Reflects each row's missing word so that its corner and another, any as likely, change places.

    The reflection is its own inverse and keeps volumes, so a Metropolis check of the energies is enough.
    """
    corners, levels = column.corners.to(u.dtype), len(column.corners)
    here = column.nearest(u)
    other = (here + torch.randint(1, levels, here.shape, generator=generator)) % levels
    normal = torch.nn.functional.normalize(corners[here] - corners[other], dim=1)
    part, moved = u[:, column.place], u.clone()
    moved[:, column.place] = part - 2 * (part * normal).sum(1, keepdim=True) * normal
    with torch.no_grad():
        log_ratio = chart(u) - chart(moved)
    uniform = torch.rand(len(u), generator=generator, dtype=torch.float64)
    accept = (column.level < 0) & (uniform.log() < log_ratio.double())
    return torch.where(accept[:, None], moved, u)
