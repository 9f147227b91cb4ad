"""The Fréchet distance and the Inception Score of any features, computed by torchmetrics."""

from __future__ import annotations

import importlib
import importlib.util
import warnings
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from burnin.core import InputError
from burnin.evaluation.neighbours import require_same_length, rows_of
from burnin.rng import derive_seed

SPLITS = 10
MISSING = "torchmetrics is not installed; it computes this: pip install 'burnin[images]'"


def unavailable() -> str | None:
    """Why torchmetrics cannot be used; None where it can. It takes seconds to load: ask when it is due."""
    if importlib.util.find_spec("torchmetrics") is None:
        return MISSING
    try:
        importlib.import_module("torchmetrics.image.fid")
    except (ImportError, RuntimeError) as error:  # such as beside a torchvision that does not fit torch
        reason = str(error).strip().splitlines()[0][:200]
        return f"torchmetrics is installed but cannot be loaded ({reason}); mend or remove what it names"
    return None


def frechet_distance(x: Tensor, y: Tensor) -> float:
    """The squared Fréchet distance between the Gaussians of the moments of x and y (Heusel et al. 2017).

        ‖μ_x - μ_y‖² + tr(Σ_x + Σ_y - 2 (Σ_x Σ_y)^½)

    With few rows it is too large, by about c/n: compare only numbers of as many rows, and with the distance
    between two sets of data of that size. Only with Inception's pool features, and 50,000 rows as a rule, is
    it the FID of papers.

    Arguments:
        x, y: features, (n, d) and (m, d), at least two rows of each.

    Raises:
        InputError: without torchmetrics; for too few rows; when lengths differ.
    """
    x, y = rows_of(x), rows_of(y)
    require_same_length(x, y)
    if min(len(x), len(y)) < 2:
        raise InputError(f"there are {len(x)} and {len(y)} rows; a covariance needs at least 2 of each")
    _require()
    from torchmetrics.image.fid import FrechetInceptionDistance

    metric = FrechetInceptionDistance(feature=_AsGiven(x.shape[1]), input_img_size=(1, 1, x.shape[1]))
    metric.set_dtype(torch.float64)
    metric.update(x, real=True)
    metric.update(y, real=False)
    return float(metric.compute())


@dataclass(frozen=True)
class InceptionScore:
    """The mean over the splits and its standard error."""

    value: float
    error: float


def inception_score(probabilities: Tensor, *, splits: int = SPLITS, seed: int = 0) -> InceptionScore:
    """exp E KL(p(class | x) ‖ p(class)), the mean over splits (Salimans et al. 2016).

    1 when all pictures look alike to the network, the number of classes when each is surely of one class and
    all classes are as many. It sees no data: compare it with that of data.

    Arguments:
        probabilities: (n, classes), rows summing to 1.
        splits: parts that p(class) is averaged in.
        seed: of the order in which rows are put into parts.

    Raises:
        InputError: without torchmetrics; for fewer than 2 rows a split; when rows do not sum to 1.
    """
    if probabilities.dim() != 2 or splits < 2 or len(probabilities) < 2 * splits:
        raise InputError(
            f"the probabilities are {tuple(probabilities.shape)} for {splits} splits; wanted (n, classes), "
            "at least 2 splits and 2 rows for each"
        )
    sums = probabilities.double().sum(1)
    if not bool(((sums - 1).abs() < 1e-4).all() and (probabilities >= 0).all()):
        raise InputError("the rows are no probabilities: they must be at least 0 and sum to 1; use a softmax")
    _require()
    from torchmetrics.image.inception import InceptionScore as Metric

    # Its softmax gives the probabilities back; the shuffle of its rows draws from the global stream.
    logits = probabilities.double().clamp(min=1e-300).log()
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that it keeps all rows, which are here already
        torch.default_generator.manual_seed(derive_seed(seed, "inception-score"))
        metric = Metric(feature=_AsGiven(logits.shape[1]), splits=splits)
        metric.set_dtype(torch.float64)
        metric.update(logits)
        mean, spread = metric.compute()
    return InceptionScore(float(mean), float(spread) / splits**0.5)


class _AsGiven(nn.Module):
    """In place of a network: the rows are features already."""

    def __init__(self, num_features: int) -> None:
        super().__init__()
        self.num_features = num_features

    def forward(self, x: Tensor) -> Tensor:
        return x


def _require() -> None:
    why = unavailable()
    if why is not None:
        raise InputError(why)
