"""The β-weighted contrast against the robust paper's formulas, written out by hand."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from burnin.core import InputError
from burnin.energies import MLP
from burnin.objectives import VARIANTS, Negatives, Variant, beta_loss, contrast
from burnin.rng import Streams

BETAS = (0.1, 0.5, 0.9, 1.7, -0.4)
T = 0.3
every_variant = pytest.mark.parametrize("variant", VARIANTS)
every_beta = pytest.mark.parametrize("beta", BETAS)


def values(n: int, name: str, scale: float = 2.0) -> Tensor:
    return scale * torch.randn(n, generator=Streams(3)[name], dtype=torch.float64)


def by_hand(positive: Tensor, negative: Tensor, beta: float, variant: str) -> tuple[Tensor, Tensor]:
    """Coefficients of ∇f(x⁺ᵢ) and ∇f(x⁻ⱼ) in the ascent direction, from the printed equations."""
    n = len(positive)
    tilde_positive, tilde_negative = torch.exp(beta * positive), torch.exp(beta * negative)
    w = tilde_negative / tilde_negative.sum()
    w_plus = tilde_positive / (tilde_positive + tilde_negative.sum())
    if variant == "no_positive":  # (7)
        return torch.full((n,), 1 / n, dtype=torch.float64), -w
    if variant == "default":  # (8)
        return (1 - w_plus) / n, -w * (1 - w_plus).mean()
    if variant == "batch_corrected":  # (33), its first sum an average as in (30)
        scale = (1 - w_plus).mean()
        return scale * torch.full((n,), 1 / n, dtype=torch.float64), -scale * w
    half = n // 2  # (34), for both parts, averaged
    scale_a, scale_b = (1 - w_plus[half:]).mean(), (1 - w_plus[:half]).mean()
    parts = [(scale_a / half).expand(half), (scale_b / (n - half)).expand(n - half)]
    return 0.5 * torch.cat(parts), -0.5 * (scale_a + scale_b) * w


@every_variant
@every_beta
@pytest.mark.parametrize("sizes", [(8, 5), (7, 7), (2, 1)])
def test_the_gradient_is_the_printed_one(variant: Variant, beta: float, sizes: tuple[int, int]) -> None:
    positive = values(sizes[0], "positive").requires_grad_(True)
    negative = values(sizes[1], "negative").requires_grad_(True)
    loss, _ = beta_loss(positive, negative, beta, variant)
    gradients = torch.autograd.grad(loss, [positive, negative])
    wanted = by_hand(positive.detach(), negative.detach(), beta, variant)
    torch.testing.assert_close(gradients[0], -wanted[0], rtol=1e-11, atol=1e-14)
    torch.testing.assert_close(gradients[1], -wanted[1], rtol=1e-11, atol=1e-14)


@every_variant
def test_through_a_network_and_a_temperature(variant: Variant) -> None:
    """The weights' gradient of the whole contrast, by T times the formula's sum of gradients of f = -E/T."""
    net = MLP(2, width=6, depth=2, generator=Streams(0)["weights"]).double()
    data = torch.randn(6, 2, generator=Streams(0)["data"], dtype=torch.float64)
    chains = 1 + torch.randn(4, 2, generator=Streams(0)["chains"], dtype=torch.float64)
    arm = Negatives(chains, weight=3.0, beta=0.4, variant=variant)
    loss, infos = contrast(net, data, [arm], temperature=T)
    torch.autograd.backward(loss)
    f = -net(torch.cat([data, chains])) / T
    positive, negative = by_hand(f[:6].detach(), f[6:].detach(), 0.4, variant)
    ascent = torch.autograd.grad(f, list(net.parameters()), torch.cat([positive, negative]))
    for weight, wanted in zip(net.parameters(), ascent, strict=True):
        assert weight.grad is not None
        torch.testing.assert_close(weight.grad, -3.0 * T * wanted, rtol=1e-10, atol=1e-13)
    assert infos[0].beta is not None
    assert infos[0].beta.gap == pytest.approx(-infos[0].d / T, rel=1e-12)


@every_beta
def test_the_default_is_softmax_classification(beta: float) -> None:
    """Equation 22: each positive against itself and all negatives, cross-entropy over β."""
    positive, negative = values(9, "positive"), values(6, "negative")
    logits = beta * torch.cat([positive.unsqueeze(1), negative.expand(9, -1)], 1)
    wanted = torch.nn.functional.cross_entropy(logits, torch.zeros(9, dtype=torch.long)) / beta
    assert beta_loss(positive, negative, beta, "default")[0].item() == pytest.approx(wanted.item(), rel=1e-12)


@every_variant
@pytest.mark.parametrize("beta", [1e-6, -1e-6])
def test_the_limit_of_small_beta_is_the_plain_contrast(variant: Variant, beta: float) -> None:
    """Up to the factor M/(M + 1) of appendix F, and terms of order β·f."""
    positive, negative = values(8, "positive"), values(5, "negative")
    for part in (positive, negative):
        part.requires_grad_(True)
    loss, info = beta_loss(positive, negative, beta, variant)
    gradients = torch.autograd.grad(loss, [positive, negative])
    factor = 1.0 if variant == "no_positive" else 5 / 6
    torch.testing.assert_close(gradients[0], torch.full_like(positive, -factor / 8), rtol=1e-4, atol=0)
    torch.testing.assert_close(gradients[1], torch.full_like(negative, factor / 5), rtol=1e-4, atol=0)
    assert info.grad_scale == pytest.approx(5 / 6, rel=1e-4)
    assert info.effective == pytest.approx(5, rel=1e-4)


@pytest.mark.parametrize("beta", [0.1, 0.5, 0.9])
def test_jensens_bound(beta: float) -> None:
    """Appendix D: the default's objective is below log σ of the mean log ratio (28), over β."""
    positive, negative = values(50, "positive"), values(20, "negative")
    objective = -beta_loss(positive, negative, beta, "default")[0]
    mean_log_ratio = (beta * positive - torch.logsumexp(beta * negative, 0)).mean()
    bound = torch.nn.functional.logsigmoid(mean_log_ratio) / beta
    assert objective.item() < bound.item()


@every_variant
@pytest.mark.parametrize("beta", [0.5, -0.5])
@pytest.mark.parametrize("shift", [-6000.0, 6000.0])
def test_values_in_the_thousands(variant: Variant, beta: float, shift: float) -> None:
    """exp(β f) over- and underflows here even in double precision; loss and gradients must not."""
    positive = values(6, "positive").float().requires_grad_(True)
    negative = (values(4, "negative") + shift).float().requires_grad_(True)
    loss, info = beta_loss(positive, negative, beta, variant)
    gradients = torch.autograd.grad(loss, [positive, negative])
    assert math.isfinite(loss.item())
    assert all(bool(torch.isfinite(g).all()) for g in gradients)
    assert all(math.isfinite(value) for value in info)
    hopeless = beta * shift < 0  # negatives that carry no weight beside a positive
    assert info.grad_scale == pytest.approx(0.0 if hopeless else 1.0, abs=1e-6)
    if hopeless and variant == "default":
        assert max(float(g.abs().max()) for g in gradients) < 1e-6


@every_beta
def test_weights_sum_to_one_and_forces_balance(beta: float) -> None:
    """Shifting f by a constant changes no loss: positive and negative forces cancel, for every variant."""
    positive, negative = values(8, "positive"), values(5, "negative")
    for variant in VARIANTS:
        shift = torch.zeros((), dtype=torch.float64, requires_grad=True)
        loss, info = beta_loss(positive + shift, negative + shift, beta, variant)
        assert torch.autograd.grad(loss, shift)[0].item() == pytest.approx(0, abs=1e-14)
        assert 1 <= info.effective <= 5 + 1e-9
        assert 1 / 5 <= info.largest <= 1
        assert info.grad_scale + info.positive == pytest.approx(1, rel=1e-12)


@pytest.mark.parametrize("beta", [0.3, 0.7])
def test_exact_samples_of_the_tempered_law_give_no_force_at_the_truth(beta: float) -> None:
    """f = -θx²/2 at the true θ, negatives from p^(1-β): the expected gradient of (7) is 0.

    Its standard error is that of a mean over the data plus that of self-normalised importance sampling.
    """
    stream = Streams(7)[f"exact {beta}"]
    n, theta = 40_000, 2.0
    data = torch.randn(n, generator=stream, dtype=torch.float64) / math.sqrt(theta)
    chains = torch.randn(n, generator=stream, dtype=torch.float64) / math.sqrt((1 - beta) * theta)
    parameter = torch.tensor(theta, dtype=torch.float64, requires_grad=True)
    loss, _ = beta_loss(-parameter * data**2 / 2, -parameter * chains**2 / 2, beta, "no_positive")
    gradient = torch.autograd.grad(loss, parameter)[0].item()
    weights = torch.softmax(-beta * theta * chains**2 / 2, 0)
    moment = (weights * chains**2 / 2).sum()
    variance = (weights**2 * (chains**2 / 2 - moment) ** 2).sum().item() + (data**2 / 2).var().item() / n
    assert abs(gradient) < 4 * math.sqrt(variance)


def test_beta_zero_is_the_plain_contrast_to_the_last_bit() -> None:
    net = MLP(2, width=6, depth=2, generator=Streams(0)["weights"])
    data, chains = (torch.randn(6, 2, generator=Streams(0)[name]) for name in ("data", "chains"))
    for variant in VARIANTS:
        loss, infos = contrast(net, data, [Negatives(chains, 5.0, 0.0, variant)], temperature=T)
        energies = net(torch.cat([data, chains]))
        plain = torch.zeros(()) + 5.0 * (energies[:6].mean() - energies[6:].mean())
        assert infos[0].beta is None
        assert loss.item() == pytest.approx(plain.item(), rel=1e-6)
        assert loss.equal(contrast(net, data, [Negatives(chains, 5.0)])[0])


@pytest.mark.parametrize("beta", [0.0, 0.4])
def test_a_pool_is_one_set_of_negatives(beta: float) -> None:
    net = MLP(2, width=6, depth=2, generator=Streams(0)["weights"]).double()
    data, first, second = (
        torch.randn(n, 2, generator=Streams(0)[f"{n}"], dtype=torch.float64) for n in (6, 4, 3)
    )
    pooled = [Negatives(x, 2.0, beta, pool="all") for x in (first, second)]
    loss, infos = contrast(net, data, pooled, temperature=T)
    whole, _ = contrast(net, data, [Negatives(torch.cat([first, second]), 2.0, beta)], temperature=T)
    assert loss.item() == pytest.approx(whole.item(), rel=1e-12)
    assert len(infos) == 2
    assert infos[0].d != infos[1].d
    assert infos[0].beta == infos[1].beta


def test_impossible_contrasts_are_refused() -> None:
    x = torch.zeros(3)
    with pytest.raises(InputError, match="known are default"):
        beta_loss(x, x, 0.5, "best")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="use that"):
        beta_loss(x, x, 0.0, "default")
    with pytest.raises(InputError, match="batch has 1"):
        beta_loss(x[:1], x, 0.5, "true_objective")
    arms = [Negatives(torch.zeros(2, 1), pool="all", beta=beta) for beta in (0.1, 0.2)]
    with pytest.raises(InputError, match="one contrast has one of each"):
        contrast(lambda x: x.sum(1), torch.zeros(2, 1), arms)
