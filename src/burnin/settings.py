"""Everything that decides a run, section by section, with its defaults."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from burnin.checked import validated
from burnin.training.guard import Remedy

SCHEMES = ("data", "noise", "persistent", "refresh", "hybrid")
FROM_NOISE = ("noise", "hybrid")
"""Schemes that start chains from noise in training."""
MOST = 10**9
"""Of anything that is counted: what a recipe asks beyond it is an error, or would never end."""
Count = Annotated[int, Field(ge=1, le=MOST)]
Whole = Annotated[int, Field(ge=0, le=MOST)]
Width = Annotated[int, Field(ge=1, le=10**6)]
Layers = Annotated[int, Field(ge=1, le=1000)]
Steps = Annotated[int, Field(ge=0, le=10**7)]
"""Of one chain: each has an entry in its schedule."""
Dim = Annotated[int, Field(ge=2, le=4096)]
KnotList = Annotated[list[tuple[Whole, float]], Field(max_length=1000)]
Words = Annotated[str, Field(max_length=300)]
NotNegative = Annotated[float, Field(ge=0)]
Share = Annotated[float, Field(ge=0, le=1)]
NOISED = ("denoising-score-matching", "cnce")
"""Objectives whose noise has a size that decides what is learned, so that there is no default."""


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=False, allow_inf_nan=False)


class RunSettings(_Section):
    """How long, how large, from which seed; `threads` of torch, 0 for its own choice.

    Small networks run fastest on one thread, and only the same number gives the same bits. Native chains
    use every core whatever `threads` says, and give the same bits. `compile` says how chains are computed.
    Networks of pictures may take a batch in `pieces`, which saves memory, and their chains in `precision`
    bf16, which saves time where the processor knows it (docs/scale.md).
    """

    seed: Annotated[int, Field(ge=-(2**63), lt=2**63)] = 0
    updates: Count = 1000
    batch_size: Count = 128
    checkpoint_every: Count = 500
    log_every: Count = 1
    tensorboard: bool = True
    threads: Annotated[int, Field(ge=0, le=1024)] = 1
    compile: Literal["auto", "never", "always"] = "auto"
    pieces: Annotated[int, Field(ge=1, le=1_000_000)] = 1
    precision: Literal["float32", "bf16"] = "float32"

    @property
    def frugal(self) -> bool:
        """Whether passes through the network are other than whole and in float32."""
        return self.pieces > 1 or self.precision != "float32"


class DataSettings(_Section):
    """A named density, a file of numbers (.npy, .npz, .csv), a folder of pictures, or what `burnin fit` read.

    Noise is added anew at every use. `rows`, a table's, and `pictures` are files in the run's own folder.
    Pictures are made smaller when `side` says so. They have numbers in `range`, by default the set's own, or
    are dequantised and put in logits when `logit` says so. With `flip` half of what training draws is
    mirrored, chosen anew at every use; what a model is judged on is not.
    The name "ica" is linear ICA: `dim` sources of the law `source`, and a matrix drawn from the run's seed,
    of which either the unmixing or the mixing one is `gaussian`; `whiten` puts it in coordinates in which it
    has the covariance 1.
    """

    name: str | None = None
    file: str | None = None
    rows: str | None = None
    pictures: str | None = None
    folder: str | None = None
    side: Count | None = None
    range: tuple[float, float] | None = None
    logit: bool = False
    flip: bool = False
    noise: NotNegative = 0.0
    dim: Dim | None = None
    source: Literal["laplace", "logistic"] = "logistic"
    gaussian: Literal["unmixing", "mixing"] = "unmixing"
    whiten: bool = False


class ModelSettings(_Section):
    """The energy and its one temperature.

    `kind` is a perceptron; a ConvNet or a wide residual network of pictures; linear ICA, whose sources have
    the law `source`; or a Gaussian-Bernoulli RBM of `hidden` units. A list of widths, depth and frequencies
    are for perceptrons; a ConvNet's width is the short-run paper's n_f, and it attends to feature maps of
    the sides `attention`; a wide residual network is named by depth and width, 28 and 10 for example.
    `slope` is that of the leaky activation; `spectral_norm` is of all layers but the last (docs/networks.md).
    `base` is a file in the run's own folder: the mixture that a network corrects (`burnin fit`), and that nce
    then takes for its noise.
    """

    temperature: float
    kind: Literal["mlp", "convnet", "wide-resnet", "ica", "rbm"] = "mlp"
    source: Literal["laplace", "logistic"] = "logistic"
    hidden: Count = 100
    width: Width | Annotated[list[Width], Field(max_length=1000)] = 128
    depth: Layers | None = None
    activation: str = "silu"
    slope: Annotated[float, Field(gt=0, lt=1)] = 0.05
    attention: list[Count] = []
    spectral_norm: bool = False
    first_scale: Annotated[float, Field(gt=0)] = 1.0
    standardise: bool = True
    frequencies: Annotated[list[float], Field(max_length=1000)] = []
    gaussian_factor: Literal["none", "fixed", "learned"] = "none"
    base: str | None = None
    average: Share = 0.0


class SamplerSettings(_Section):
    """The chains. A step size is a number, or knots [[iteration, value], …] along the chain.

    `resample_below` 0 anneals without resampling.
    """

    kind: Literal["langevin", "mala", "hmc"] = "langevin"
    num_steps: Steps
    num_chains: Count | None = None
    step_size: float | KnotList
    displacement: float | None = None
    energy_norm: float | None = None
    target_acceptance: float | None = None
    adapt_until: Whole | None = None
    num_leapfrog: Annotated[int, Field(ge=1, le=10**6)] = 5
    heat: KnotList | None = None
    resample_below: float | None = None
    scale: Literal["none", "fisher"] = "none"
    scale_decay: float = 0.9
    scale_floor: float = 1e-3


class NoiseSettings(_Section):
    """The noise that chains start from."""

    kind: Literal["gaussian", "uniform"] = "gaussian"
    scale: float | list[float] = 1.0
    shift: float | list[float] = 0.0


class ObjectiveSettings(_Section):
    """What is made small: the contrast with a scheme's chains, or an objective without chains.

    `noise_sd` is of denoising-score-matching and cnce; `probes` of sliced-score-matching; `noise_ratio` of
    nce and cnce; `noise_diagonal` and `normaliser_rate` (of the constant, in learning rates) of nce; the rest
    of lsd: λ, the critic's layers and their activation, its steps for each update, its learning rate (that of
    the energy by default; it falls along with it), its Adam's β and how its trace is computed.
    """

    name: Literal[
        "contrast",
        "score-matching",
        "sliced-score-matching",
        "denoising-score-matching",
        "nce",
        "cnce",
        "likelihood",
        "lsd",
    ] = "contrast"
    noise_sd: Annotated[float, Field(gt=0)] | None = None
    probes: Literal["gaussian", "rademacher"] = "gaussian"
    noise_ratio: Count = 1
    noise_diagonal: bool = False
    normaliser_rate: Annotated[float, Field(gt=0)] = 1.0
    lam: Annotated[float, Field(gt=0)] = 10.0
    critic_width: Width = 300
    critic_layers: Layers = 2
    critic_activation: Literal["silu", "tanh"] = "silu"
    critic_standardise: bool = False
    critic_steps: Count = 5
    critic_rate: Annotated[float, Field(gt=0)] | None = None
    critic_betas: tuple[float, float] = (0.5, 0.9)
    trace: Literal["exact", "gaussian", "rademacher"] = "exact"


class SchemeSettings(_Section):
    """Where chains start: data, noise, persistent, refresh or hybrid; and how negatives are weighted.

    Without chains, by an objective other than the contrast, there is no scheme ("none"); one that is given
    is not used.

    `beta` is a number, or points [[update, value], …] that it passes through in straight lines. It may be
    that of the arms from noise, or from data, only; `pooled` puts both arms' negatives into one contrast,
    whose weight is 1. With `exchange` the chains of a bank travel between processes (docs/scale.md).
    """

    name: Literal["data", "noise", "persistent", "refresh", "hybrid", "none"]
    lam: float = 25.0
    bank_size: Count = 10_000
    refresh: Share = 0.05
    exchange: bool = False
    beta: float | KnotList = 0.0
    beta_on: Literal["noise", "data", "both"] = "both"
    variant: Literal["default", "no_positive", "batch_corrected", "true_objective"] = "default"
    pooled: bool = False


class JointSettings(_Section):
    """A classifier of `classes` classes as the energy (JEM): log p(y|x) + weight · log p(x) is learned.

    The network has an output for each class. `labels` says how many labels are known, by default all;
    `batch_size` how many labelled pictures each update takes, by default as many as others.
    """

    classes: Annotated[int, Field(ge=2)]
    weight: NotNegative = 1.0
    labels: Count | None = None
    batch_size: Count | None = None


class OptimizerSettings(_Section):
    """Any optimiser of torch.optim by name, and how its rate falls: along a curve, or from given updates on
    by given factors (`rate_steps`)."""

    name: str = "Adam"
    learning_rate: float = 1e-3
    decay: Literal["none", "linear", "cosine", "geometric"] = "none"
    decay_from: Share = 0.6
    final_rate: Annotated[float, Field(gt=0)] = 0.01
    warmup: Whole = 0
    rate_steps: list[tuple[Count, Annotated[float, Field(gt=0)]]] = []
    clip_norm: float | None = None
    options: dict[str, float | bool | list[float]] = {}


class GuardConfig(_Section):
    """See `burnin.training.GuardSettings`; `beta` is T, and at most 0.1, by default."""

    enabled: bool = True
    window: Whole = 200
    warmup: Whole = 100
    threshold: float = 30.0
    patience: Whole = 10
    remedy: Remedy | list[Remedy] = "learning_rate"
    factor: float = 0.5
    beta: Annotated[float, Field(gt=0, lt=1)] | None = None
    tries: Whole = 3


class StudySettings(_Section):
    """How a trained model is judged.

    `adjusted_steps` is of the image study: steps of Metropolis-adjusted chains from noise; 0 for none.
    """

    samples: Count = 5000
    distance_sets: Annotated[int, Field(ge=5, le=10**6)] = 12
    long_chains: Count = 1000
    long_steps: Annotated[int, Field(ge=1, le=10**7)] = 20_000
    data_chains: Count = 1000
    data_steps: Annotated[int, Field(ge=1, le=10**7)] = 10_000
    grid_points: Annotated[int, Field(ge=2, le=10**5)] = 321
    cooling_steps: Annotated[int, Field(ge=10, le=10**7)] = 1000
    likelihood_particles: Whole = 256
    adjusted_steps: Annotated[int, Field(ge=0, le=10**7)] = 0


class Expectation(_Section):
    """A number that the recipe's table must show: a bound, or a multiple of another number.

    The other is the same metric of `of_scheme`, or `of_metric`. A multiple may be missed by as much as the
    larger of the two schemes' `give_or_take`, a metric that is the standard error of this one.
    """

    scheme: str
    metric: str
    at_most: float | None = None
    at_least: float | None = None
    at_most_times: float | None = None
    at_least_times: float | None = None
    of_scheme: str = "hybrid"
    of_metric: str | None = None
    give_or_take: str | None = None
    claim: bool = False

    @property
    def other(self) -> str:
        """What a multiple is of, in words."""
        return self.of_scheme + "'s" + (f" {self.of_metric}" if self.of_metric is not None else "")

    def describe(self) -> str:
        """The expectation in words."""
        name = f"{self.scheme}'s {self.metric}"
        if self.at_most is not None:
            return f"{name} ≤ {self.at_most:g}"
        if self.at_least is not None:
            return f"{name} ≥ {self.at_least:g}"
        slack = f", give or take {self.give_or_take}" if self.give_or_take is not None else ""
        if self.at_most_times is not None:
            return f"{name} ≤ {self.at_most_times:g} × {self.other}{slack}"
        return f"{name} ≥ {self.at_least_times:g} × {self.other}{slack}"


class Part(_Section):
    """A section of recipes that train no model, defined where they are used: unknown keys are errors too."""


class Recipe(_Section):
    """What every recipe says of itself: its name, its cost, what it shows and what it must show."""

    title: Words
    cost: Words = ""
    about: Words = ""
    expected: Annotated[list[Expectation], Field(max_length=1000)] = []

    def essence(self) -> dict[str, Any]:
        """What decides numbers: not the words, nor what is expected."""
        return self.model_dump(mode="json", exclude=set(Recipe.model_fields))


class Config(Recipe):
    """Everything that decides a run."""

    run: RunSettings = RunSettings()
    data: DataSettings
    model: ModelSettings
    objective: ObjectiveSettings = ObjectiveSettings()
    scheme: SchemeSettings = SchemeSettings(name="none")
    joint: JointSettings | None = None
    noise: NoiseSettings = NoiseSettings()
    sampler: SamplerSettings
    sampler_from_noise: dict[str, Any] = {}
    sampler_at_test: dict[str, Any] = {}
    more_samplers: list[dict[str, Any]] = []
    optimizer: OptimizerSettings = OptimizerSettings()
    guard: GuardConfig = GuardConfig()
    study: StudySettings = StudySettings()

    @property
    def without_chains(self) -> bool:
        """Whether the objective needs no chains."""
        return self.objective.name != "contrast"

    @model_validator(mode="after")
    def _has_what_it_needs(self) -> Config:
        if not self.without_chains and self.scheme.name == "none":
            raise ValueError("scheme.name is missing: the contrast needs chains, and they a start")
        self.noise_sampler()
        self.test_sampler()
        self.further_samplers()
        if self.objective.name in NOISED and self.objective.noise_sd is None:
            raise ValueError(f"objective.noise_sd is missing: {self.objective.name} adds noise of that size")
        return self

    def further_samplers(self) -> list[SamplerSettings]:
        """Samplers beside the scheme's own, each `sampler` with its changes, pooled in one contrast."""
        own = self.sampler.model_dump(exclude_unset=True)
        return [
            validated(SamplerSettings, {**own, **changes}, "more_samplers") for changes in self.more_samplers
        ]

    def noise_sampler(self) -> SamplerSettings:
        """The sampler of chains that start from noise: `sampler` with `sampler_from_noise` over it."""
        table = {**self.sampler.model_dump(exclude_unset=True), **self.sampler_from_noise}
        return validated(SamplerSettings, table, "sampler_from_noise")

    def test_sampler(self) -> SamplerSettings | None:
        """The sampler that generates from noise once training is over, where it is none of training's:
        the one that training has for it, with `sampler_at_test` over it."""
        if not self.sampler_at_test:
            return None
        own = self.noise_sampler() if self.scheme.name in FROM_NOISE else self.sampler
        table = {**own.model_dump(exclude_unset=True), **self.sampler_at_test}
        return validated(SamplerSettings, table, "sampler_at_test")
