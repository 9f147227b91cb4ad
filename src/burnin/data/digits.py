"""Small pictures that need no download: the 8×8 digits that come with scikit-learn."""

from __future__ import annotations

import torch

from burnin.data.tables import Table

SIDE = 8
LEVELS = 16.0


def digits8() -> Table:
    """1,797 handwritten digits of 8×8 pixels in [0, 1], one row each (UCI's optical recognition test set).

    Some pixels are 0 in every picture, so an energy needs noise on the data (`data.noise`; convergent, 5A).

    Example:
        >>> digits8().dim, len(digits8())
        (64, 1797)
    """
    # scikit-learn takes a while to import; nobody else needs it here.
    from sklearn.datasets import load_digits

    values = torch.as_tensor(load_digits().data / LEVELS, dtype=torch.get_default_dtype())
    return Table(
        values, tuple(f"pixel{row + 1}_{column + 1}" for row in range(SIDE) for column in range(SIDE))
    )
