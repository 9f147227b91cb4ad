"""The mean of skewed terms: p values that know of the skewness."""

from __future__ import annotations

import math

import torch
from torch import Tensor

TINY = 1e-12


def skewness(terms: Tensor) -> Tensor:
    """The third moment about the mean over the cube of the standard deviation, of each row.

    Example:
        >>> skewness(torch.tensor([[0.0, 0.0, 0.0, 4.0]]))
        tensor([1.1547])
    """
    away = terms - terms.mean(-1, keepdim=True)
    return away.pow(3).mean(-1) / away.square().mean(-1).pow(1.5).clamp_min(TINY)


def corrected(t: Tensor, skew: Tensor, n: int) -> Tensor:
    """Hall's monotone transformation of t, whose law is normal to the next order in 1/√n (Hall 1992).

    With u = t/√n and skewness γ: √n (u + γu²/3 + γ²u³/27) + γ/6√n.

    Example:
        >>> corrected(torch.tensor([2.0]), torch.tensor([0.0]), 100)
        tensor([2.])
        >>> bool(corrected(torch.tensor([2.0]), torch.tensor([-3.0]), 100) < 2)
        True
    """
    u = t / math.sqrt(n)
    return math.sqrt(n) * (u + skew * u.square() / 3 + skew.square() * u.pow(3) / 27) + skew / (
        6 * math.sqrt(n)
    )


def upper_tail(z: Tensor) -> Tensor:
    """1 - Φ of each."""
    return 0.5 * torch.erfc(z.double() / math.sqrt(2))
