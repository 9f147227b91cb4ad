"""The middle and the spread of repeated measurements."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Any


def spread(seconds: Sequence[float]) -> dict[str, Any]:
    """Seconds for each step: every turn, the median, the quartiles and the least.

    Example:
        >>> spread([1.0, 2.0, 4.0, 3.0, 5.0])["quartiles"]
        [2.0, 4.0]
    """
    middle = quartiles(seconds)
    return {
        "turns": list(seconds),
        "median": middle[1],
        "quartiles": [middle[0], middle[2]],
        "least": min(seconds),
    }


def quartiles(values: Sequence[float]) -> tuple[float, float, float]:
    """The lower quartile, the median and the upper quartile."""
    if len(values) < 2:
        return (values[0], values[0], values[0]) if values else (math.nan, math.nan, math.nan)
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, middle, high
