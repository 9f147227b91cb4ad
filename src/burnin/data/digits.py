"""Small pictures that need no download: the 8×8 digits that come with scikit-learn."""

from __future__ import annotations

import torch

from burnin.data.pictures import Pictures

LEVELS = 16


def digits8() -> Pictures:
    """1,797 handwritten digits of 8×8 pixels in [0, 1], one row each (UCI's optical recognition test set).

    Some pixels are 0 in every picture, so an energy needs noise on the data (`data.noise`; convergent, 5A).

    Example:
        >>> digits8().dim, len(digits8())
        (64, 1797)
    """
    # scikit-learn takes a while to import; nobody else needs it here.
    from sklearn.datasets import load_digits

    found = load_digits()
    pixels = torch.as_tensor(found.images, dtype=torch.uint8)
    labels = torch.as_tensor(found.target, dtype=torch.int64)
    classes = tuple(str(digit) for digit in range(10))
    return Pictures(pixels.unsqueeze(1), levels=LEVELS, low=0.0, high=1.0, labels=labels, classes=classes)
