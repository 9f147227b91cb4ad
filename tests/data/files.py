"""Files of pictures in the official layout, written by the tests."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import torch
from torch import Tensor


def write_idx(path: Path, array: Tensor, *, packed: bool = False) -> None:
    """An IDX file of bytes, in the layout of MNIST's page: magic, sizes big-endian, numbers."""
    head = struct.pack(f">BBBB{array.dim()}I", 0, 0, 8, array.dim(), *array.shape)
    content = head + array.numpy().tobytes()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(content) if packed else content)


def some_bytes(*shape: int, seed: int = 0) -> Tensor:
    """Bytes that differ, so that a transposed axis would show."""
    return torch.randint(256, shape, generator=torch.Generator().manual_seed(seed), dtype=torch.uint8)
