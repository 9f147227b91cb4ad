"""A density of a table: scores of rows, samples as rows, what is known about both, kept in a folder."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from burnin.assemble import load_model
from burnin.checked import validated_data
from burnin.config import read_run_config
from burnin.core import InputError
from burnin.data import EncodedRows, Encoding, Frame
from burnin.data.encoding import Codes
from burnin.drawing import FEWEST_CHAINS
from burnin.evaluation import chains
from burnin.evaluation.model import Model
from burnin.evaluation.normaliser import Normaliser
from burnin.evaluation.row_density import row_log_density
from burnin.limits import brief, read_json
from burnin.ranks import ALONE, Ranks
from burnin.samplers import Engine
from burnin.settings import Config
from burnin.storage import write_text_atomically

FITTED_FILE = "fitted.json"
FORMAT = "burnin-fitted-1"
QUANTILES = 1001
ROUNDS = 100
"""Times that chains are run, at most, for samples within the bounds."""


@dataclass(frozen=True)
class Mass:
    """The share of the model's mass within the columns' bounds; 1 where there are none."""

    share: float = 1.0
    draws: int = 0

    @property
    def error(self) -> float:
        """The standard error of its logarithm."""
        return math.sqrt((1 - self.share) / (self.share * self.draws)) if self.draws else 0.0


@dataclass(frozen=True)
class MeanDensity:
    """The mean log-density of rows.

    Attributes:
        nats: the mean over rows that can occur.
        low, high: where it lies, as far as the normaliser is known.
        error: the standard error of the mean over rows.
        columns: of the density.
        rows: how many rows there were; `outside`, how many of them cannot occur.
    """

    nats: float
    low: float
    high: float
    error: float
    columns: int
    rows: int
    outside: int

    @property
    def bits(self) -> tuple[float, float, float]:
        """Bits for each column, lowest and highest: -nats / (columns · log 2)."""
        unit = -1 / (self.columns * math.log(2))
        return self.nats * unit, self.high * unit, self.low * unit

    def describe(self) -> str:
        """The mean in words."""
        bits, fewest, most = self.bits
        between = "" if self.low == self.high else f", between {self.low:.4g} and {self.high:.4g}"
        bits_between = "" if self.low == self.high else f", between {fewest:.4g} and {most:.4g}"
        return (
            f"{self.nats:.4g} nats{between} (± {1.96 * self.error:.2g} by the choice of rows); "
            f"{bits:.4g} bits per dimension{bits_between}"
        )

    @classmethod
    def of(cls, numbers: dict[str, Any]) -> MeanDensity:
        """The inverse of `as_dict`."""
        return cls(**{name: value for name, value in numbers.items() if not name.startswith("bits")})

    def as_dict(self) -> dict[str, Any]:
        """Everything by name."""
        bits, fewest, most = self.bits
        return asdict(self) | {
            "bits_per_dimension": bits,
            "bits_low": fewest,
            "bits_high": most,
        }


@dataclass(frozen=True, eq=False)
class FittedTable:
    """A trained density of a table's rows.

    Attributes:
        model: the energy of whitened coordinates, and its chains.
        encoding: what the columns are.
        normaliser: log Z of the coordinates.
        mass: the share within the columns' bounds.
        reference: quantiles of the log-densities of the rows that it was fitted to, rising.
        contamination: share of those rows that count as outliers.
        about: what was chosen and measured.
        config: the run's configuration.
    """

    model: Model
    encoding: Encoding
    normaliser: Normaliser
    mass: Mass
    reference: NDArray[np.float64]
    contamination: float
    about: dict[str, Any]
    config: Config

    def log_density(
        self, codes: Codes, frame: Frame | None = None, ranks: Ranks = ALONE
    ) -> NDArray[np.float64]:
        """log p of each row, (n,); -inf for one that cannot occur (see `Encoding.supported`).

        `ranks` are processes that have the same rows and share the work.
        """
        own = unbounded(self.model, self.encoding, self.normaliser, codes[ranks.rows(len(codes))])
        found = ranks.gather(torch.from_numpy(own), len(codes)).numpy() - math.log(self.mass.share)
        return np.where(self.encoding.supported(codes, frame), found, -math.inf)

    def percentile(self, log_density: NDArray[np.float64]) -> NDArray[np.float64]:
        """The share of the fitted rows with a lower log-density, in percent."""
        levels = np.linspace(0, 100, len(self.reference))
        return np.interp(log_density, self.reference, levels)

    def threshold(self, contamination: float | None = None) -> float:
        """The log-density below which a row is an outlier."""
        share = self.contamination if contamination is None else contamination
        require_contamination(share)
        return float(np.interp(share, np.linspace(0, 1, len(self.reference)), self.reference))

    def mean_density(self, log_density: NDArray[np.float64]) -> MeanDensity:
        """The mean over rows, with its interval."""
        good = log_density[np.isfinite(log_density)]
        mean = float(good.mean()) if len(good) else -math.inf
        error = float(good.std(ddof=1) / math.sqrt(len(good))) if len(good) > 1 else 0.0
        z, wall = self.normaliser, 1.96 * self.mass.error
        return MeanDensity(
            nats=mean,
            low=mean - (z.high - z.value) - wall,
            high=mean + (z.value - z.low) + wall,
            error=error,
            columns=len(self.encoding.modelled),
            rows=len(log_density),
            outside=len(log_density) - len(good),
        )

    def sample(self, n: int, generator: torch.Generator) -> Frame:
        """n rows from chains that start at noise; those beyond a bound are drawn again."""
        parts: list[Frame] = []
        left = n
        for _ in range(ROUNDS):
            wanted = max(FEWEST_CHAINS, math.ceil(left / max(self.mass.share, 0.05)) + 1)
            rows, good = self.encoding.decode(shuffled_from_noise(self.model, wanted, generator))
            kept = np.flatnonzero(good)[:left]
            if len(kept):
                parts.append(Frame({name: values[kept] for name, values in rows.columns.items()}))
            left -= len(kept)
            if left == 0:
                break
        else:
            raise InputError(f"hardly any sample lies within the bounds: {n - left} of {n}; loosen them")
        names = parts[0].names
        return Frame({name: np.concatenate([part.columns[name] for part in parts]) for name in names})

    def save(self, folder: Path) -> None:
        """Writes what a run's folder lacks beside its rows and its checkpoint, as JSON."""
        write_text_atomically(folder / FITTED_FILE, json.dumps(self.content(), indent=1, allow_nan=False))

    @classmethod
    def load(cls, folder: Path, engine: Engine | None = None) -> FittedTable:
        """The density that `burnin fit` left in a folder.

        Raises:
            InputError: when the folder holds no such run, or a damaged one.
        """
        path = folder / FITTED_FILE
        if not (folder / "config.toml").is_file():
            raise InputError(f"{folder} is no run: it has no config.toml")
        if not path.is_file():
            raise InputError(f"{folder} holds no fitted table (no {FITTED_FILE}); make one with burnin fit")
        model = load_model(folder, engine)
        rows = model.rows
        if not isinstance(rows, EncodedRows):
            raise InputError(f"{folder} is no fitted table: its data are no rows that burnin fit coded")
        content = read_json(path)
        return cls.of(content, model, rows.encoding, read_run_config(folder), str(path))

    def content(self) -> dict[str, Any]:
        """What is known beside the model, as JSON has it."""
        return {
            "format": FORMAT,
            "normaliser": asdict(self.normaliser),
            "mass": asdict(self.mass),
            "contamination": self.contamination,
            "about": self.about,
            "reference": self.reference.tolist(),
        }

    @classmethod
    def of(
        cls, content: Mapping[str, Any], model: Model, encoding: Encoding, config: Config, where: str
    ) -> FittedTable:
        """The inverse of `content`; `where` it was read is told when it is damaged."""
        try:
            if content["format"] != FORMAT:
                raise InputError(f"{where} was not written by this version of burnin (wanted {FORMAT!r})")
            return cls(
                model=model,
                encoding=encoding,
                normaliser=validated_data(Normaliser, content["normaliser"], where),
                mass=validated_data(Mass, content["mass"], where),
                reference=rising(content["reference"]),
                contamination=share_of(content["contamination"]),
                about=dict(content["about"]),
                config=config,
            )
        except (ValueError, KeyError, TypeError, OverflowError) as error:
            told = where in str(error)
            raise InputError(str(error) if told else f"{where} is damaged ({brief(error)})") from error


def shuffled_from_noise(model: Model, n: int, generator: torch.Generator) -> Tensor:
    """The ends of n chains from noise, in any order: annealed chains of one ancestor end side by side."""
    drawn = chains.from_noise(model, n, generator).position
    return drawn[torch.randperm(n, generator=generator)]


def unbounded(model: Model, encoding: Encoding, normaliser: Normaliser, codes: Codes) -> NDArray[np.float64]:
    """log p of rows, (n,), as if no column had bounds."""
    return row_log_density(model.energy, model.temperature, normaliser.value, encoding, codes)


def holds_table(folder: Path) -> bool:
    """Whether `burnin fit` has finished a table there; a fit of pictures leaves a file of the same name."""
    return (folder / FITTED_FILE).is_file() and read_run_config(folder).data.rows is not None


def quantiles(log_density: NDArray[np.float64]) -> NDArray[np.float64]:
    """The quantiles that are kept of the fitted rows' log-densities: of few rows, their own order."""
    return np.quantile(log_density, np.linspace(0, 1, min(QUANTILES, len(log_density))))


def rising(numbers: object) -> NDArray[np.float64]:
    """Quantiles as a file has them.

    Raises:
        ValueError: when they are none.
    """
    found = np.array(numbers, dtype=np.float64)
    if found.ndim != 1 or not len(found) or not np.isfinite(found).all() or (np.diff(found) < 0).any():
        raise InputError("the reference is no list of numbers that rise")
    return found


def share_of(contamination: object) -> float:
    """The share of outliers as a file has it."""
    share = float(contamination)  # type: ignore[arg-type]
    require_contamination(share)
    return share


def require_contamination(share: float) -> None:
    """Raises InputError unless the share of outliers lies in (0, 0.5]."""
    if not 0 < share <= 0.5:
        raise InputError(f"contamination is {share}; it must lie above 0 and be at most 0.5")
