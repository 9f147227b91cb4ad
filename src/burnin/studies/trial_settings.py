"""Settings of trials on restricted Boltzmann machines; the defaults are the paper's (stein, appendix B.1)."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from burnin.discrepancies import METHODS, CriticSettings, KernelSettings, Method
from burnin.energies.rbm import SWEEPS
from burnin.settings import Count, NotNegative, Part, Share
from burnin.stein import Trace
from burnin.studies.measured import MeasuredRecipe

Positive = Annotated[float, Field(gt=0)]
Number = Annotated[int, Field(ge=0)]


class MachinePart(Part):
    """A random Gaussian-Bernoulli RBM for each trial, and how far the data's is from the model's.

    Data are drawn by `sweeps` of annealed Gibbs sampling, or, where `block_steps` is above 0, as the paper
    draws them: by so many block Gibbs steps from noise, which end far from the machine's law.
    """

    dim: Count = 50
    hidden: Count = 40
    perturbation: NotNegative = 0.0
    sweeps: Count = SWEEPS
    block_steps: Number = 0


class TrialsPart(Part):
    """How many trials a row has, of how many points, and how many critics are trained `together`.

    `fresh` points beside those of the trial are seen by no test: on them the power of a critic is measured,
    where the test itself has only a tenth of its points and one answer.
    """

    number: Count = 20
    together: Count = 1
    points: Annotated[int, Field(ge=100)] = 1000
    fresh: Number = 0


class CriticPart(Part):
    """See `burnin.discrepancies.CriticSettings`; a batch of 0 is all points, a patience of 0 never stops.

    `standardise` puts every column in units of its spread over the training points.
    """

    width: Count = 300
    layers: Count = 2
    lam: Positive = 0.5
    learning_rate: Positive = 1e-3
    decay: bool = False
    weight_decay: NotNegative = 5e-4
    dropout: Share = 0.5
    iterations: Count = 1000
    validate_every: Count = 100
    batch_size: Number = 0
    patience: Number = 0
    average: Share = 0.0
    trace: Trace = "gaussian"
    standardise: bool = False

    def settings(self) -> CriticSettings:
        """As the critics' training wants them."""
        table = self.model_dump(exclude={"standardise", "batch_size", "patience"})
        return CriticSettings(**table, batch_size=self.batch_size or None, patience=self.patience or None)


class KernelPart(Part):
    """Of the kernel tests: the share of the points that bandwidth and locations come from, and the null."""

    train_share: Share = 0.2
    num_draws: Count = 1000
    num_locations: Count = 5

    def settings(self) -> KernelSettings:
        """As the kernel tests want them."""
        return KernelSettings(**self.model_dump())


class TrialsRecipe(MeasuredRecipe):
    """Trials on machines: which tests, at which level."""

    machine: MachinePart = MachinePart()
    trials: TrialsPart = TrialsPart()
    methods: tuple[Method, ...] = METHODS
    level: Annotated[float, Field(gt=0, lt=1)] = 0.05
    critic: CriticPart = CriticPart()
    kernel: KernelPart = KernelPart()
