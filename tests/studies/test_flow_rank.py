"""A flow's checkpoints: the same however often training was cut off, bits of bytes, ranks."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch

from burnin.core import InputError
from burnin.data import Pictures
from burnin.studies import STUDIES, run_study
from burnin.studies.flow_rank import FLOW_RANK, pool, summary
from burnin.studies.flows import FlowPart, bits_per_dim, build_flow, flow_after, flow_log_prob

TINY = FlowPart(levels=1, blocks=1, channels=4, batch_size=8, updates=2, learning_rate=1e-2)


@pytest.fixture(scope="module")
def digits() -> Pictures:
    pixels = torch.randint(256, (20, 1, 4, 4), generator=torch.Generator().manual_seed(0)).to(torch.uint8)
    return Pictures(pixels).in_logits()


def silent(what: str, done: int, total: int) -> None:
    """Nobody is told."""


def test_training_that_was_cut_off_gives_the_same_flow(digits: Pictures, tmp_path: Path) -> None:
    state = torch.random.get_rng_state()
    whole = flow_after(tmp_path / "whole", digits, TINY, 2, 0, silent)
    flow_after(tmp_path / "parts", digits, TINY, 1, 0, silent)
    parts = flow_after(tmp_path / "parts", digits, TINY, 2, 0, silent)
    x = digits.sample(5, torch.Generator().manual_seed(1))
    log_prob = flow_log_prob(whole, digits.shape)(x)
    assert torch.equal(log_prob, flow_log_prob(parts, digits.shape)(x))
    assert not torch.equal(log_prob, flow_log_prob(build_flow(digits.shape, TINY, 0), digits.shape)(x))
    assert torch.equal(state, torch.random.get_rng_state())


def test_a_flow_is_a_density(digits: Pictures, tmp_path: Path) -> None:
    """log p(x) = log N(z(x)) + log |∂z/∂x|, the determinant by autograd."""
    flow = flow_after(tmp_path, digits, TINY, 1, 0, silent)
    x = digits.sample(1, torch.Generator().manual_seed(1)).double()
    flow = flow.double()

    def latent(row: torch.Tensor) -> torch.Tensor:
        return torch.cat([z.flatten() for z in flow.inverse_and_log_det(row.reshape(1, 1, 4, 4))[0]])

    determinant = torch.linalg.slogdet(torch.func.jacrev(latent)(x[0]))[1]
    base = sum(
        q.log_prob(z)
        for q, z in zip(flow.q0, flow.inverse_and_log_det(x.reshape(1, 1, 4, 4))[0], strict=True)
    )
    torch.testing.assert_close(flow_log_prob(flow, digits.shape)(x), base + determinant)


def test_bits_are_those_of_the_bytes() -> None:
    """Bytes, dark with probability 1/4, else bright: their entropy, by a density that knows them."""
    generator = torch.Generator().manual_seed(0)
    value = torch.where(torch.rand(20_000, 2, generator=generator) < 0.25, 0, 255)
    share = (value + torch.rand(value.shape, generator=generator)).double() / 256
    x = share.logit()
    known = torch.where(value == 0, 0.25, 0.75).log().sum(1) + (256 * share * (1 - share)).log().sum(1)
    bits = bits_per_dim(known, x)
    entropy = -0.25 * math.log2(0.25) - 0.75 * math.log2(0.75)
    assert abs(bits.mean().item() - entropy) < 4 * bits.std().item() / len(bits) ** 0.5


def test_pictures_that_cannot_be_halved_are_refused() -> None:
    with pytest.raises(InputError, match=r"cannot be halved 2 times; lower flow.levels"):
        build_flow((1, 6, 6), FlowPart(), 0)


def test_ranks_and_their_table() -> None:
    rows = {
        f"c{i}": {
            "bits": 3.0 - i,
            "bits_error": 0.1,
            "lsd": 9.0 - i**2,
            "lsd_error": 1.0,
            "score_matching": sm,
            "score_matching_error": 1.0,
        }
        for i, sm in ((1, 1.0), (2, -5.0), (3, 0.0))
    }
    assert pool(rows)["all"] == pytest.approx(
        {
            "lsd_linear": 8 / math.sqrt(2 * 98 / 3),
            "score_matching_linear": 1 / math.sqrt(2 * 62 / 3),
            "lsd_rank": 1.0,
            "score_matching_rank": 0.5,
            "rank_ahead": 0.5,
        }
    )
    assert summary(rows).splitlines()[-2:] == [
        "| rank correlation | 1 | 1.000 | 0.500 |",
        "| linear correlation | 1 | 0.990 | 0.156 |",
    ]
    assert pool({"c1": rows["c1"]}) == {}


def test_the_small_variant_is_as_expected(tmp_path: Path) -> None:
    assert STUDIES["flow-rank"] is FLOW_RANK
    table, checks = run_study(FLOW_RANK, tmp_path, quick=True, jobs=1, status=lambda *_: None)
    assert [check.text for check in checks if not check.holds] == []
    assert set(table["rows"]) == {"c1", "c2", "c3"}
    assert (tmp_path / "figure.png").stat().st_size > 5000
