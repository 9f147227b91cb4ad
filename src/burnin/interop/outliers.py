"""Outlier scores by the convention of pytorch-ood: the larger, the more of an outlier."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from burnin.core import InputError, evaluate
from burnin.data import Frame
from burnin.estimator import EnergyDensity
from burnin.fitted import FittedTable
from burnin.interop.sources import Source, resolve


class EnergyDetector:
    """A detector with the methods of pytorch-ood's: `fit`, `fit_features`, `predict`, `predict_features`.

    The score of a row is E(x)/T, which is -log p(x) up to a constant; of a table it is -log p(x) itself, in
    nats, infinite for a row that cannot occur. pytorch-ood is not needed, and its metrics take the scores.

    Arguments:
        source: a run or exported folder, a model (`as_model`), or an `EnergyDensity`, fitted or yet to be.

    Example:
        >>> import torch
        >>> from burnin import MALA
        >>> from burnin.interop import as_model
        >>> rows = torch.randn(100, 2, generator=torch.Generator().manual_seed(0))
        >>> model = as_model(lambda x: 0.5 * x.square().sum(1), rows, sampler=MALA(0.5, 1.0), num_steps=30)
        >>> EnergyDetector(model)(torch.tensor([[0.0, 0.0], [3.0, 4.0]]))
        tensor([ 0.0000, 12.5000])
    """

    def __init__(self, source: Source) -> None:
        self._source = source if isinstance(source, EnergyDensity) else resolve(source)

    def fit(self, data_loader: Iterable[Any], device: object = None) -> Self:
        """Fits an `EnergyDensity` to all batches; what is trained already stays as it is.

        Arguments:
            data_loader: batches of rows, or of pairs of rows and labels; rows with a label below 0 are
                outliers by pytorch-ood's convention and are left out.
            device: for the convention's sake; rows are taken to the processor.
        """
        if isinstance(self._source, EnergyDensity):
            batches = [_inliers(batch) for batch in data_loader]
            if not batches:
                raise InputError("the data loader has no batches; there is nothing to fit to")
            self._source.fit(torch.cat(batches).numpy())
        return self

    def fit_features(self, x: Tensor, y: Tensor | None = None) -> Self:
        """The same for rows in one tensor, (n, dim), with labels if there are any."""
        return self.fit([x if y is None else (x, y)])

    def predict(self, x: Tensor) -> Tensor:
        """Outlier scores of rows, (n,), on their device: the larger, the more of an outlier."""
        if isinstance(self._source, EnergyDensity):
            check_is_fitted(self._source)
        held = resolve(self._source)
        rows = x.detach().flatten(1).cpu()
        if isinstance(held, FittedTable):
            names = [column.name for column in held.encoding.columns]
            if rows.shape[1] != len(names):
                raise InputError(f"the rows have {rows.shape[1]} columns; the table has {len(names)}")
            frame = Frame.of_numbers(rows.double().numpy(), names)
            scores = -torch.from_numpy(held.log_density(held.encoding.codes(frame), frame))
        else:
            dtype = next((weight.dtype for weight in held.energy.parameters()), rows.dtype)
            with torch.no_grad():
                scores = evaluate(held.energy, rows.to(dtype)) / held.temperature
        return scores.to(device=x.device, dtype=torch.get_default_dtype())

    def predict_features(self, x: Tensor) -> Tensor:
        """The same: an energy sees rows, not features of a classifier."""
        return self.predict(x)

    def __call__(self, x: Tensor) -> Tensor:
        """`predict`."""
        return self.predict(x)


def _inliers(batch: Any) -> Tensor:
    """The rows of a batch, (n, dim), less those whose label is below 0."""
    x, y = (batch[0], batch[1]) if isinstance(batch, list | tuple) and len(batch) > 1 else (batch, None)
    rows = torch.as_tensor(x[0] if isinstance(x, list | tuple) else x).detach().flatten(1).cpu()
    return rows if y is None else rows[(torch.as_tensor(y) >= 0).reshape(-1).cpu()]
