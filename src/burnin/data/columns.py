"""What a table's columns are: numbers with a step and bounds, words with levels, constants, repetitions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from burnin.core import InputError
from burnin.data.frames import Frame, is_numeric

MOST_LEVELS = 50
MOST_DECIMALS = 6
LARGEST = 1e100
MOST_STEPS = 10_000
"""A column with decimals that ranges over more steps than this is as good as continuous."""
COARSE = 0.02
"""Steps, in standard deviations, above which a value is spread over its cell: below, nothing would change."""
NEAR = 0.05
"""Values this near to 0, as a share of the range, press against it."""
Bounds = Mapping[str, tuple[float | None, float | None]]


class _Column(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    name: str


class Numeric(_Column):
    """Numbers; `decimals` where all are whole multiples of 10^-decimals (0: integers), bounds included.

    Where steps are `coarse`, values are spread over their cells; finer ones are only rounded on output.
    """

    kind: Literal["numeric"] = "numeric"
    decimals: Annotated[int, Field(ge=0, le=MOST_DECIMALS)] | None = None
    coarse: bool = False
    low: float | None = None
    high: float | None = None
    typical: float

    @property
    def step(self) -> float:
        """The distance of neighbouring values, 0 for a continuous column."""
        return 0.0 if self.decimals is None else 10.0**-self.decimals

    @property
    def cell(self) -> float:
        """The width over which a value is spread."""
        return self.step if self.coarse else 0.0

    def describe(self) -> str:
        """The column in words."""
        known = {None: "continuous", 0: "whole numbers"}.get(self.decimals, f"in steps of {self.step:g}")
        ends = [f"at least {self.low:g}" if self.low is not None else ""]
        ends.append(f"at most {self.high:g}" if self.high is not None else "")
        return ", ".join([known, *(end for end in ends if end)])


class Category(_Column):
    """Words, each one of `levels`."""

    kind: Literal["category"] = "category"
    levels: Annotated[tuple[str, ...], Field(min_length=2, max_length=MOST_LEVELS)]
    typical: str

    def describe(self) -> str:
        """The column in words."""
        return f"{len(self.levels)} categories"


class Constant(_Column):
    """One value throughout: no part of the density, written back on output."""

    kind: Literal["constant"] = "constant"
    value: float | str

    def describe(self) -> str:
        """The column in words."""
        return f"constant ({self.value}): left out of the density, written back on output"


class Repeated(_Column):
    """The same values as another column: no part of the density, copied on output."""

    kind: Literal["repeated"] = "repeated"
    of: str

    def describe(self) -> str:
        """The column in words."""
        return f"repeats {self.of}: left out of the density, copied on output"


Column = Annotated[Numeric | Category | Constant | Repeated, Field(discriminator="kind")]


def infer_columns(
    frame: Frame, *, dequantise: bool = True, bounds: Bounds | None = None, find_bounds: bool = False
) -> list[Column]:
    """Decides what each column of a frame without gaps is.

    Arguments:
        frame: the table.
        dequantise: whether steps are looked for.
        bounds: lowest and highest possible value of some columns, None for no limit.
        find_bounds: whether other columns are bounded by 0, where no value is below it and some are near.

    Example:
        >>> frame = Frame({"n": np.array([3.0, 7.0, 9.0]), "x": np.array([0.25, 0.5, -1.5])})
        >>> [column.describe() for column in infer_columns(frame)]
        ['whole numbers', 'in steps of 0.01']
    """
    given = dict(bounds or {})
    unknown = sorted(set(given) - set(frame.names))
    if unknown:
        raise InputError(f"bounds for {', '.join(unknown)}; the columns are: {', '.join(frame.names)}")
    found: list[Column] = []
    for name, values in frame.columns.items():
        twin = next((other.name for other in found if _same(frame.columns[other.name], values)), None)
        if len(set(values.tolist())) == 1:
            found.append(Constant(name=name, value=values.tolist()[0]))
        elif twin is not None:
            found.append(Repeated(name=name, of=twin))
        elif is_numeric(values):
            found.append(
                _numeric(
                    name, values, dequantise, given.get(name, _found(values) if find_bounds else (None, None))
                )
            )
        else:
            found.append(_category(name, values))
    if not any(isinstance(column, Numeric | Category) for column in found):
        raise InputError("every column is constant: there is no density to learn")
    for column in found:
        if column.name in given and not isinstance(column, Numeric):
            raise InputError(f"bounds for {column.name}, which is not a column of different numbers")
    return found


def _numeric(
    name: str, values: NDArray[Any], dequantise: bool, bounds: tuple[float | None, float | None]
) -> Numeric:
    lowest, highest = float(values.min()), float(values.max())
    decimals = _decimals(values) if dequantise else None
    low, high = bounds
    if (low is not None and lowest < low) or (high is not None and highest > high):
        raise InputError(
            f"column {name} ranges from {lowest:g} to {highest:g}, beyond its bounds {low} to {high}"
        )
    if max(abs(lowest), abs(highest)) > LARGEST or highest - lowest < 1 / LARGEST:
        raise InputError(f"column {name} ranges from {lowest:g} to {highest:g}; rescale it")
    coarse = decimals is not None and 10.0**-decimals > COARSE * float(values.std())
    typical = float(np.median(values))
    return Numeric(name=name, decimals=decimals, coarse=coarse, low=low, high=high, typical=typical)


def _category(name: str, values: NDArray[Any]) -> Category:
    counted = Counter(values.tolist())
    if len(counted) > min(MOST_LEVELS, max(2, len(values) // 2)):
        raise InputError(
            f"column {name} has {len(counted)} different words in {len(values)} rows, too many for "
            "categories; leave it out (--target-col), or group them"
        )
    return Category(name=name, levels=tuple(sorted(counted)), typical=counted.most_common(1)[0][0])


def _decimals(values: NDArray[Any]) -> int | None:
    """The fewest decimals that all values have: 0 for integers; None if there are none or too many steps."""
    spread = float(values.max() - values.min())
    for decimals in range(MOST_DECIMALS + 1):
        if np.abs(values).max() * 10**decimals > 2**50 or (decimals and spread * 10**decimals > MOST_STEPS):
            return None
        if (np.abs(values - np.round(values, decimals)) <= 1e-9 * 10**-decimals).all():
            return decimals
    return None


def _found(values: NDArray[Any]) -> tuple[float | None, float | None]:
    """0 as the lowest value, if the column presses against it; there is no such sign for a highest one."""
    lowest, highest = float(values.min()), float(values.max())
    return (0.0 if 0 <= lowest <= NEAR * (highest - lowest) else None), None


def _same(one: NDArray[Any], other: NDArray[Any]) -> bool:
    return one.dtype == other.dtype and bool((one == other).all())
