"""The learned Stein discrepancy by a critic of one's own: any module from points to vectors."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from burnin.core import DivergedError, InputError, Report
from burnin.discrepancies.critics import REPORT_EVERY, CriticSettings, Objective, power_of
from burnin.discrepancies.learned import SPLIT, Learned, split_sizes
from burnin.discrepancies.models import Points
from burnin.stein import combine, l2_penalty, value_and_trace

PASS = 500
"""Points that are judged at a time."""


def learn_with(
    critic: nn.Module,
    points: Points,
    settings: CriticSettings,
    generator: torch.Generator,
    *,
    objective: Objective,
    split: Sequence[float] = SPLIT,
    report: Report | None = None,
) -> Learned:
    """Splits the points, fits the critic to the first part, chooses by the second, judges on the third.

    As `learn`, for one trial and with a module of any kind; of the settings those of the perceptron (width,
    layers, dropout) are not used. The critic has the weights of its best look afterwards. One that knows its
    trace (`burnin.stein.HasTrace`) is judged by it; others take a pass back for each dimension.

    Arguments:
        critic: f, from (n, dim) to the same; it starts as it is.
        points: data and scores, (n, dim), in the order that they are split.
        settings: of its training.
        generator: draws mini-batches and probes.
        objective: "power" for a test, "discrepancy" for a ranking.
        split: shares of training, validation and test.
        report: told how far it is.

    Example:
        >>> generator = torch.Generator().manual_seed(0)
        >>> x = torch.randn(500, 2, generator=generator)
        >>> settings = CriticSettings(iterations=100, learning_rate=0.1)
        >>> learned = learn_with(nn.Linear(2, 2), Points(x, 1 - x), settings, generator, objective="power")
        >>> bool(learned.p_value < 0.05)
        True
    """
    if points.x.dim() != 2:
        raise InputError(f"points of shape {tuple(points.x.shape)}; a critic of one's own takes (n, dim)")
    n = len(points.x)
    first, second, _ = split_sizes(n, split)
    train, validation = points.rows(0, first), points.rows(first, first + second)
    optimiser = torch.optim.Adam(
        critic.parameters(), lr=settings.learning_rate, weight_decay=settings.weight_decay
    )
    best, kept, stale, update = -torch.inf, _state(critic), 0, 0
    for update in range(1, settings.iterations + 1):
        batch = _batch(train, settings.batch_size, generator)
        values, trace = value_and_trace(critic, batch.x, trace=settings.trace, generator=generator)
        terms = combine(batch.scores, values, trace)
        aim = power_of(terms) if objective == "power" else terms.mean()
        optimiser.zero_grad(set_to_none=True)
        optimiser.param_groups[0]["lr"] = settings.rate(update)
        (l2_penalty(values, settings.lam) - aim).backward()  # type: ignore[no-untyped-call]
        optimiser.step()
        if report is not None and update % REPORT_EVERY == 0:
            report("critics", update, settings.iterations)
        if update % settings.validate_every == 0 or update == settings.iterations:
            seen = _terms(critic, validation)
            if not bool(seen.isfinite().all()):
                raise DivergedError(f"a critic diverged within {update} updates; lower its learning rate")
            value = float(power_of(seen) if objective == "power" else seen.mean() - seen.std())
            if value > best:
                best, kept, stale = value, _state(critic), 0
            else:
                stale += 1
                if settings.patience is not None and stale >= settings.patience:
                    break
    critic.load_state_dict(kept)
    chosen, tested = _terms(critic, validation), _terms(critic, points.rows(first + second, n))
    return Learned(tested.unsqueeze(0), chosen.unsqueeze(0), torch.tensor([update]))


def _batch(points: Points, size: int | None, generator: torch.Generator) -> Points:
    if size is None or size >= len(points.x):
        return points
    rows = torch.randint(len(points.x), (size,), generator=generator, device=generator.device)
    return Points(points.x[rows], points.scores[rows])


@torch.no_grad()
def _terms(critic: nn.Module, points: Points) -> Tensor:
    """The Stein terms by the exact trace, in double precision, (n,)."""
    parts = zip(torch.split(points.x, PASS), torch.split(points.scores, PASS), strict=True)
    return torch.cat([combine(s, *value_and_trace(critic, x)) for x, s in parts]).double()


def _state(critic: nn.Module) -> dict[str, Tensor]:
    return {name: value.detach().clone() for name, value in critic.state_dict().items()}
