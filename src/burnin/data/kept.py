"""Arrays that a run keeps for itself in an .npz file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from burnin.core import InputError


def read_kept(path: Path, *names: str) -> list[NDArray[Any]]:
    """The arrays of these names.

    Raises:
        InputError: when the file is missing or damaged.
    """
    try:
        # Opened here, because np.load leaves a damaged file open.
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            return [np.asarray(arrays[name]) for name in names]
    except Exception as error:  # numpy, zipfile and zlib have no common error for a damaged file
        raise InputError(f"{path} is missing or damaged; the run cannot be used without it") from error
