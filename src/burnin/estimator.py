"""The scikit-learn face: a density and outlier detector for tables that chooses its settings by itself."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from burnin.choosing import Choice, Wishes
from burnin.core import InputError, Outcome
from burnin.correcting import Effort, Listener
from burnin.data import EncodedRows, Encoding, Frame
from burnin.fitted import FittedTable, MeanDensity, require_contamination
from burnin.fitting import fit_rows, go_on
from burnin.samplers import Engine
from burnin.trained import TrainedDensity
from burnin.training import RunFolder, Trainer

Bounds = Mapping[Any, tuple[float | None, float | None]]


class EnergyDensity(TrainedDensity):
    """A normalised density of rows by an energy-based model, p(x) = q(x) exp(-f(x)/T) / Z.

    q is a mixture of Gaussians, chosen by cross-validation on whitened coordinates; the network f learns what
    it lacks, by telling rows from draws of q (docs/data.md: what is chosen). Training ends when the
    likelihood of held-out rows no longer rises. log Z comes from a grid in one and two dimensions and from
    annealed importance sampling beyond; `normaliser_` says which, and between which bounds.

    Arguments:
        components: Gaussians of each of q's five mixtures; None chooses.
        width: units in each of the network's three layers; None chooses by the number of rows.
        temperature: T; None takes 1 in training, and then what fits the held-out rows best.
        step_size: of the chains that sample; None chooses by a pilot run, and again after the training.
        num_steps: length of those chains; None chooses likewise.
        noise: Gaussian noise on the data, in standard deviations; None takes a fifth of Scott's bandwidth.
        learning_rate: of Adam; None takes the recipe's.
        batch_size: rows for each update, beside four times as many draws of q.
        max_updates: updates of the weights at most.
        patience: looks at the held-out likelihood, one every 25 updates, without a new best before it ends.
        minutes: time that may be used, about; None for as long as it takes. Only without it does the same
            `random_state` give the same model.
        validation_fraction: share of the rows that are held out to see when to end.
        dequantise: whether columns of whole numbers, or of few decimals, are taken as such: scores are then
            those of the value's cell, and samples are rounded.
        bounds: lowest and highest possible value of some columns, by name or number; None for no limit.
        contamination: share of the rows that count as outliers.
        particles: chains that estimate log Z.
        random_state: seed, generator or None.
        verbose: whether choices are printed.

    Attributes:
        normaliser_: log Z, its interval, how it was had, and whether to trust it.
        choice_: what was chosen.
        held_out_: the mean log-density of the held-out rows, with its interval.
        offset_: `decision_function` is `score_samples` less this.
        n_updates_: updates of the weights that the model had.
        n_features_in_, feature_names_in_: of the rows.

    Example:
        >>> import numpy as np
        >>> X = np.random.default_rng(0).normal(size=(200, 1))
        >>> density = EnergyDensity(max_updates=50, random_state=0).fit(X)
        >>> round(float(np.exp(density.score_samples([[0.0]]))[0]), 1)  # 1 / sqrt(2π) = 0.40
        0.4
        >>> density.sample(3).shape
        (3, 1)
    """

    def __init__(
        self,
        *,
        components: int | None = None,
        width: int | None = None,
        temperature: float | None = None,
        step_size: float | None = None,
        num_steps: int | None = None,
        noise: float | None = None,
        learning_rate: float | None = None,
        batch_size: int = 128,
        max_updates: int = 2000,
        patience: int = 16,
        minutes: float | None = None,
        validation_fraction: float = 0.15,
        dequantise: bool = True,
        bounds: Bounds | None = None,
        contamination: float = 0.05,
        particles: int = 256,
        random_state: int | np.random.RandomState | None = None,
        verbose: bool = False,
    ) -> None:
        self.components = components
        self.width = width
        self.temperature = temperature
        self.step_size = step_size
        self.num_steps = num_steps
        self.noise = noise
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.max_updates = max_updates
        self.patience = patience
        self.minutes = minutes
        self.validation_fraction = validation_fraction
        self.dequantise = dequantise
        self.bounds = bounds
        self.contamination = contamination
        self.particles = particles
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: ArrayLike | Frame, y: object = None) -> Self:  # noqa: N803  (scikit-learn's name)
        """Fits the density to rows: a 2-D array or data frame of numbers, or a `burnin.data.Frame`.

        Ctrl-C keeps the best model so far, and raises KeyboardInterrupt.
        """
        self.fit_in(X)
        if self.outcome_ is Outcome.INTERRUPTED:
            raise KeyboardInterrupt(self.outcome_.message)
        return self

    def fit_in(
        self,
        X: ArrayLike | Frame,  # noqa: N803
        path: Path | None = None,
        *,
        find_bounds: bool = False,
        listener: Listener | None = None,
        engine: Engine | None = None,
    ) -> Self:
        """`fit` with everything kept in a run's folder, and somebody told what goes on.

        Arguments:
            X: the rows.
            path: a folder that is empty or not there; it is made once nothing is wrong with the rows.
            find_bounds: whether 0 bounds columns that press against it.
            listener: who is told.
            engine: how chains are computed.
        """
        told = listener or self._listener()
        wishes, effort = self._wishes(), self._effort()
        frame = self._frame(X, reset=True)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        bounds = self._named_bounds(frame)
        encoding = Encoding.fit(frame, dequantise=self.dequantise, bounds=bounds, find_bounds=find_bounds)
        codes = encoding.codes(frame)
        rows = EncodedRows.split(encoding, codes, share=self.validation_fraction, seed=seed)
        folder = None if path is None else RunFolder(path)
        for line in [*frame.notes, *encoding.describe()]:
            told.say(line)
        fitted, trainer, outcome = fit_rows(
            rows,
            wishes,
            effort,
            seed=seed,
            contamination=self.contamination,
            folder=folder,
            listener=told,
            engine=engine,
        )
        return self._keep(fitted, trainer, outcome)

    def partial_fit(self, X: ArrayLike | Frame, y: object = None) -> Self:  # noqa: N803
        """Goes on with the training, on these rows, for at most `max_updates` further updates.

        The first call is `fit`. What the columns are, and what was chosen, stays. The best model is sought
        anew among those from here on, by the part of these rows that is held out.
        """
        if not hasattr(self, "fitted_"):
            return self.fit(X)
        if not hasattr(self, "_snapshot"):
            raise InputError("a density that was exported has no state to go on from; fit anew")
        effort, wishes = self._effort(), self._wishes()
        encoding, base = self.fitted_.encoding, self.fitted_.model.base
        assert base is not None
        codes = encoding.codes(self._frame(X, reset=False))
        good = encoding.supported(codes)
        if not good.all():
            raise InputError(
                f"row {int((~good).argmax()) + 1} cannot occur by what the columns were at first"
            )
        rows = EncodedRows.split(encoding, codes, share=self.validation_fraction, seed=self._config.run.seed)
        fitted, trainer, outcome = go_on(
            self._snapshot,
            self._config,
            self.choice_,
            rows,
            base,
            effort,
            updates=wishes.max_updates,
            contamination=self.contamination,
            listener=self._listener(),
        )
        return self._keep(fitted, trainer, outcome)

    def save_pretrained(self, folder: str | Path) -> Path:
        """Writes model.safetensors and config.json, without rows, to a folder that is new or empty."""
        from burnin.interop.pretrained import save_pretrained

        check_is_fitted(self)
        settings = self.get_params() | {"bounds": [[key, *pair] for key, pair in (self.bounds or {}).items()]}
        if not isinstance(self.random_state, int):
            settings["random_state"] = None
        names = getattr(self, "feature_names_in_", None)
        estimator = {"settings": settings, "names": None if names is None else list(names)}
        return save_pretrained(self.fitted_, folder, estimator=estimator)

    @classmethod
    def from_pretrained(cls, folder: str | Path) -> Self:
        """The density that `save_pretrained`, or `burnin export` of a fitted table, wrote to a folder.

        It scores and samples to the same bits; only `partial_fit` cannot go on.
        """
        from burnin.interop.pretrained import from_pretrained, read_pretrained

        fitted = from_pretrained(folder)
        if not isinstance(fitted, FittedTable):
            raise InputError(
                f"{folder} holds a model of no table; load it with burnin.interop.from_pretrained"
            )
        kept = read_pretrained(folder).estimator
        settings = kept.get("settings", {"contamination": fitted.contamination})
        bounds = {key: (low, high) for key, low, high in settings.pop("bounds", [])}
        try:
            density = cls(**settings, bounds=bounds or None)
        except TypeError as error:
            raise InputError(f"{folder}: config.json has settings of another version ({error})") from error
        every = [column.name for column in fitted.encoding.columns]
        names = kept.get("names", every)
        density.n_features_in_ = len(every)
        if names is not None:
            density.feature_names_in_ = np.array(names, dtype=object)
        return density._take(fitted, Outcome.OK)

    def _named_bounds(self, frame: Frame) -> dict[str, tuple[float | None, float | None]]:
        return {
            frame.names[key] if isinstance(key, int) else str(key): pair
            for key, pair in (self.bounds or {}).items()
        }

    def _keep(self, fitted: FittedTable, trainer: Trainer, outcome: Outcome) -> Self:
        # What `partial_fit` goes on from.
        self._snapshot, self._config = trainer.snapshot().clone(), fitted.config
        return self._take(fitted, outcome)

    def _take(self, fitted: FittedTable, outcome: Outcome) -> Self:
        self.fitted_ = fitted
        self.choice_ = Choice(**fitted.about["choice"])
        self.normaliser_ = fitted.normaliser
        self.held_out_ = MeanDensity.of(fitted.about["held_out"])
        self.offset_ = fitted.threshold()
        self.n_updates_ = fitted.model.num_updates
        self.outcome_ = outcome
        return self

    def _wishes(self) -> Wishes:
        return Wishes(
            self.components,
            self.width,
            self.temperature,
            self.step_size,
            self.num_steps,
            self.noise,
            self.learning_rate,
            self.batch_size,
            self.max_updates,
        )

    def _effort(self) -> Effort:
        require_contamination(self.contamination)
        if not 0 < self.validation_fraction < 1:
            raise InputError(
                f"validation_fraction is {self.validation_fraction}; it must lie between 0 and 1"
            )
        return Effort(self.minutes, self.patience, self.particles)

    def _listener(self) -> Listener:
        return Listener(say=print) if self.verbose else Listener()
