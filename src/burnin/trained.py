"""What an estimator of a density can do once it is fitted: score, tell outliers, sample, fill gaps."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, DensityMixin, OutlierMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from burnin.core import InputError
from burnin.data import Frame
from burnin.data.encoding import FEWEST
from burnin.fitted import FittedTable, MeanDensity
from burnin.imputing import impute
from burnin.rng import Streams


class TrainedDensity(OutlierMixin, DensityMixin, BaseEstimator):  # type: ignore[misc]
    """The use of a fitted table; how one is fitted is `EnergyDensity`.

    Attributes:
        fitted_: the table's density.
        offset_: `decision_function` is `score_samples` less this.
        random_state: of samples and of what is filled in, where none is given.
    """

    fitted_: FittedTable
    offset_: float
    random_state: int | np.random.RandomState | None

    def score_samples(self, X: ArrayLike | Frame) -> NDArray[np.float64]:  # noqa: N803
        """The normalised log-density of each row, in nats and in the rows' own units."""
        check_is_fitted(self)
        frame = self._frame(X, reset=False)
        return self.fitted_.log_density(self.fitted_.encoding.codes(frame), frame)

    def score(self, X: ArrayLike | Frame, y: object = None) -> float:  # noqa: N803
        """The mean log-density of rows."""
        return float(self.score_samples(X).mean())

    def mean_density(self, X: ArrayLike | Frame) -> MeanDensity:  # noqa: N803
        """The mean log-density of rows with its interval, in nats and in bits per dimension."""
        return self.fitted_.mean_density(self.score_samples(X))

    def decision_function(self, X: ArrayLike | Frame) -> NDArray[np.float64]:  # noqa: N803
        """`score_samples` less `offset_`: negative for outliers."""
        return self.score_samples(X) - self.offset_

    def predict(self, X: ArrayLike | Frame) -> NDArray[np.int64]:  # noqa: N803
        """1 for rows like those that it was fitted to, -1 for outliers."""
        return np.where(self.decision_function(X) >= 0, 1, -1)

    def sample(
        self, n_samples: int = 1, random_state: int | np.random.RandomState | None = None
    ) -> NDArray[np.float64]:
        """New rows, (n_samples, n_features); for columns of words see `sample_frame`."""
        frame = self.sample_frame(n_samples, random_state)
        words = [name for name, values in frame.columns.items() if values.dtype.kind != "f"]
        if words:
            raise InputError(f"{', '.join(words)} holds words, not numbers; use sample_frame")
        return np.stack(list(frame.columns.values()), axis=1)

    def sample_frame(
        self, n_samples: int = 1, random_state: int | np.random.RandomState | None = None
    ) -> Frame:
        """New rows as a frame, columns and units as in the data."""
        check_is_fitted(self)
        if n_samples < 1:
            raise InputError(f"n_samples is {n_samples}; it must be at least 1")
        given = self.random_state if random_state is None else random_state
        seed = int(check_random_state(given).randint(2**31 - 1))
        return self.fitted_.sample(n_samples, Streams(seed)["sample"])

    def impute(
        self,
        X: ArrayLike | Frame,  # noqa: N803
        *,
        mean: bool = False,
        random_state: int | np.random.RandomState | None = None,
    ) -> NDArray[np.float64]:
        """The rows, (n, n_features), with each NaN drawn from its conditional law given what is known.

        Metropolis-adjusted chains draw all of a row's gaps together; bounds and steps of columns are kept.
        For columns of words see `impute_frames`.

        Arguments:
            X: rows with NaN where a value is missing.
            mean: whether to fill in the conditional mean, whose error is smallest, instead of a draw, which
                keeps the spread.
            random_state: of the chains; the estimator's own by default.
        """
        frame = self.impute_frames(X, mean=mean, random_state=random_state)[0]
        words = [name for name, values in frame.columns.items() if values.dtype.kind != "f"]
        if words:
            raise InputError(f"{', '.join(words)} holds words, not numbers; use impute_frames")
        return np.stack(list(frame.columns.values()), axis=1)

    def impute_frames(
        self,
        X: ArrayLike | Frame,  # noqa: N803
        *,
        draws: int = 1,
        mean: bool = False,
        random_state: int | np.random.RandomState | None = None,
    ) -> tuple[Frame, ...]:
        """`impute` as frames, one for each of several draws."""
        check_is_fitted(self)
        frame = self._frame(X, reset=False, gaps=True)
        given = self.random_state if random_state is None else random_state
        stream = Streams(int(check_random_state(given).randint(2**31 - 1)))["impute"]
        return impute(self.fitted_, frame, generator=stream, draws=draws, mean=mean).frames

    def _frame(self, X: ArrayLike | Frame, *, reset: bool, gaps: bool = False) -> Frame:  # noqa: N803
        """The rows as a frame, checked as scikit-learn checks them."""
        if isinstance(X, Frame):
            if reset:
                self.n_features_in_ = len(X.names)
                self.feature_names_in_ = np.array(X.names, dtype=object)
            return X
        values = validate_data(
            self,
            X,
            dtype=np.float64,
            reset=reset,
            ensure_min_samples=FEWEST if reset else 1,
            ensure_all_finite="allow-nan" if gaps else True,
        )
        return Frame.of_numbers(values, [str(name) for name in getattr(self, "feature_names_in_", ())])
