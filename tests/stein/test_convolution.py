"""A critic of pictures: its trace is that of its Jacobian, and it goes where any critic goes."""

from __future__ import annotations

import pytest
import torch

from burnin.core import InputError
from burnin.stein import PictureCritic, value_and_trace


def stream(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("shape", [(1, 4, 5), (3, 4, 3)])
@pytest.mark.parametrize("side", [1, 3, 5])
def test_the_trace_is_that_of_its_jacobian(shape: tuple[int, int, int], side: int) -> None:
    critic = PictureCritic(shape, channels=4, side=side, generator=stream()).double()
    dim = shape[0] * shape[1] * shape[2]
    x = torch.randn(3, dim, generator=stream(1), dtype=torch.float64)
    with torch.no_grad():
        critic.bends_at.normal_(generator=stream(2))  # pixels that differ
        critic.shift.normal_(generator=stream(3))
    value, trace = value_and_trace(critic, x)
    torch.testing.assert_close(value, critic(x))
    one = lambda row: critic(row.unsqueeze(0)).squeeze(0)  # noqa: E731
    torch.testing.assert_close(trace, torch.stack([torch.func.jacrev(one)(row).trace() for row in x]))


def test_kernels_have_a_middle() -> None:
    with pytest.raises(InputError, match="the side odd"):
        PictureCritic((1, 4, 4), side=2, generator=stream())
