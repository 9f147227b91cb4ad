"""Self-attention: nothing at first, a mean over all places then, where it is asked for."""

from __future__ import annotations

import torch

from burnin.energies import ConvNet
from burnin.energies.attention import SelfAttention


def stream(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_it_equals_its_formula_place_by_place() -> None:
    layer = SelfAttention(16, stream()).double()
    with torch.no_grad():
        layer.gain.fill_(0.5)
    h = torch.randn(2, 16, 3, 4, generator=stream(1), dtype=torch.float64)
    q, k, v = (part(h).flatten(2) for part in (layer.query, layer.key, layer.value))
    assert q.shape[1] == k.shape[1] == 2
    out = layer(h).flatten(2)
    for n in range(2):
        for i in range(12):
            weights = torch.softmax(torch.stack([q[n, :, i] @ k[n, :, j] for j in range(12)]) / 2**0.5, 0)
            wanted = h.flatten(2)[n, :, i] + 0.5 * sum(weights[j] * v[n, :, j] for j in range(12))
            assert torch.allclose(out[n, :, i], wanted, rtol=1e-10)


def test_far_places_see_each_other() -> None:
    layer = SelfAttention(8, stream()).double()
    h = torch.randn(1, 8, 6, 6, generator=stream(1), dtype=torch.float64).requires_grad_(True)
    for gain, sees in ((0.0, False), (1.0, True)):
        with torch.no_grad():
            layer.gain.fill_(gain)
        (gradient,) = torch.autograd.grad(layer(h)[0, :, 0, 0].sum(), h)
        assert bool((gradient[0, :, 5, 5] != 0).any()) is sees


def test_it_starts_as_the_network_without_and_its_gain_is_learned() -> None:
    net = ConvNet((1, 16, 16), width=4, generator=stream(), attention=[8])
    x = torch.randn(3, 1, 16, 16, generator=stream(1))
    attention = [(i, part) for i, part in enumerate(net.layers) if isinstance(part, SelfAttention)]
    assert [i for i, _ in attention] == [4]  # after the second convolution's activation
    without = torch.nn.Sequential(*[part for part in net.layers if not isinstance(part, SelfAttention)])
    assert torch.equal(net(x), without(x).squeeze(1))
    net(x).sum().backward()
    gain = attention[0][1].gain.grad
    assert gain is not None
    assert gain.item() != 0
