"""Calibration and adversarial robustness, against what they must be where it is known."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from burnin.core import InputError
from burnin.evaluation.attack import Norm, attacked, robust_accuracy
from burnin.evaluation.calibration import judge_classes, reliability


def drawn_classes(n: int, sharpen: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Probabilities, and labels drawn from them; what is told is sharper than the truth by a factor."""
    generator = torch.Generator().manual_seed(0)
    logits = 2 * torch.randn(n, 5, generator=generator, dtype=torch.float64)
    labels = torch.multinomial(logits.softmax(1), 1, generator=generator).squeeze(1)
    return (sharpen * logits).softmax(1), labels


def test_a_calibrated_classifier_is_off_by_chance_only() -> None:
    found = judge_classes(*drawn_classes(4000, 1.0))
    assert abs(found.ece.value - found.ece_by_chance) < 4 * found.ece.error
    expected = float(drawn_classes(4000, 1.0)[0].max(1).values.mean())
    assert abs(found.accuracy.value - expected) < 4 * found.accuracy.error


def test_a_classifier_that_is_too_sure_is_found_out() -> None:
    sharp = judge_classes(*drawn_classes(4000, 3.0))
    assert sharp.ece.value - sharp.ece_by_chance > 10 * sharp.ece.error
    assert (sharp.reliability.confidence >= sharp.reliability.accuracy - 0.1).all()
    assert sharp.cross_entropy.value > judge_classes(*drawn_classes(4000, 1.0)).cross_entropy.value


def test_bins_hold_everything_once() -> None:
    confidence = np.array([0.0, 0.5, 0.999, 1.0, 1.0])
    found = reliability(confidence, np.array([0.0, 1.0, 1.0, 1.0, 0.0]), bins=10)
    assert found.count.tolist() == [1, 1, 3]
    np.testing.assert_allclose(found.accuracy, [0.0, 1.0, 2 / 3])
    assert found.ece == pytest.approx((0 + 0.5 + abs(2 - 2.999)) / 5)


@pytest.mark.parametrize("norm", ["linf", "l2"])
def test_an_attack_stays_in_its_ball_and_finds_the_worst_of_a_linear_classifier(norm: Norm) -> None:
    """Of logits (w·x, 0) the margin falls by radius · ‖w‖₁ at most in the ℓ∞ ball, by radius · ‖w‖₂ in ℓ2."""
    w = torch.tensor([3.0, -4.0])
    x = torch.randn(200, 2, generator=torch.Generator().manual_seed(0))
    labels = (x @ w < 0).long()
    logits = lambda y: torch.stack([y @ w, torch.zeros(len(y))], 1)  # noqa: E731
    generator = torch.Generator().manual_seed(1)
    moved = attacked(logits, x, labels, 0.1, generator, norm=norm)
    length = (moved - x).abs().max() if norm == "linf" else (moved - x).norm(dim=1).max()
    assert length <= 0.1 + 1e-6
    lost = 0.1 * (w.abs().sum() if norm == "linf" else w.norm())
    fell = (x @ w).abs() - (moved @ w) * (1 - 2.0 * labels)
    # On the ℓ2 edge each step leaves 1/1.125 of the angle to the worst point: 20 do not quite reach it.
    assert (fell <= lost + 1e-5).all()
    assert (fell >= (1 if norm == "linf" else 0.9) * lost - 1e-5).all()
    shares = robust_accuracy(logits, x, labels, [0.0, 0.1, 0.3], generator, norm=norm)
    worst = [float(((x @ w).abs() > share * lost / 0.1).double().mean()) for share in (0.0, 0.1, 0.3)]
    best = [float(((x @ w).abs() > 0.9 * share * lost / 0.1).double().mean()) for share in (0.0, 0.1, 0.3)]
    assert all(low <= share <= high for low, share, high in zip(worst, shares, best, strict=True))


def test_an_attack_keeps_to_the_pictures_range_and_refuses_nonsense() -> None:
    x, labels = torch.full((3, 2), 0.95), torch.zeros(3, dtype=torch.long)
    logits = lambda y: torch.stack([-y.sum(1), y.sum(1)], 1)  # noqa: E731
    moved = attacked(logits, x, labels, 0.2, torch.Generator(), bounds=(-1.0, 1.0))
    assert float(moved.max()) == 1.0
    with pytest.raises(InputError, match="must rise"):
        robust_accuracy(logits, x, labels, [0.2, 0.1], torch.Generator())
    with pytest.raises(InputError, match="radius is -1"):
        attacked(logits, x, labels, -1.0, torch.Generator())
    with pytest.raises(InputError, match="n at least 2"):
        judge_classes(torch.ones(1, 2), torch.zeros(1))
