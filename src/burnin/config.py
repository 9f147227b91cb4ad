"""Recipes and run configurations: TOML in, checked settings out.

A recipe is a short difference from the defaults below, or from another recipe that its `base` names.
An unknown key is an error that names the
nearest known one. The complete configuration is written to a run's config.toml.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import tomli_w
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from burnin.core import InputError

SCHEMES = ("data", "noise", "persistent", "refresh", "hybrid")
FROM_NOISE = ("noise", "hybrid")
"""Schemes that start chains from noise in training."""
Section = TypeVar("Section", bound=BaseModel)
KnotList = list[tuple[int, float]]
Count = Annotated[int, Field(ge=1)]
NotNegative = Annotated[float, Field(ge=0)]
Share = Annotated[float, Field(ge=0, le=1)]
NOISED = ("denoising-score-matching", "cnce")
"""Objectives whose noise has a size that decides what is learned, so that there is no default."""


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=False)


class RunSettings(_Section):
    """How long, how large, from which seed; `threads` of torch, 0 for its own choice.

    Small networks run fastest on one thread, and only the same number gives the same bits. Native chains
    use every core whatever `threads` says, and give the same bits. `compile` says how chains are computed.
    """

    seed: int = 0
    updates: Count = 1000
    batch_size: Count = 128
    checkpoint_every: Count = 500
    log_every: Count = 1
    tensorboard: bool = True
    threads: int = 1
    compile: Literal["auto", "never", "always"] = "auto"


class DataSettings(_Section):
    """A named density, a file of numbers (.npy, .npz, .csv), or what `burnin fit` read: rows or pictures.

    Noise is added anew at every use. `rows`, a table's, and `pictures` are files in the run's own folder.
    Pictures are made smaller when `side` says so, and dequantised and put in logits when `logit` does.
    The name "ica" is linear ICA: `dim` sources of the law `source`, and a matrix drawn from the run's seed,
    of which either the unmixing or the mixing one is `gaussian`.
    """

    name: str | None = None
    file: str | None = None
    rows: str | None = None
    pictures: str | None = None
    side: Count | None = None
    logit: bool = False
    noise: NotNegative = 0.0
    dim: Annotated[int, Field(ge=2)] | None = None
    source: Literal["laplace", "logistic"] = "logistic"
    gaussian: Literal["unmixing", "mixing"] = "unmixing"


class ModelSettings(_Section):
    """The energy and its one temperature.

    `kind` is a perceptron; a ConvNet of pictures; linear ICA, whose sources have the law `source`; or a
    Gaussian-Bernoulli RBM of `hidden` units. What is said of layers and frequencies is for perceptrons.
    `base` is a file in the run's own folder: the mixture that a network corrects (`burnin fit`), and that nce
    then takes for its noise.
    """

    temperature: float
    kind: Literal["mlp", "convnet", "ica", "rbm"] = "mlp"
    source: Literal["laplace", "logistic"] = "logistic"
    hidden: Count = 100
    width: int | list[int] = 128
    depth: int | None = None
    activation: str = "silu"
    first_scale: Annotated[float, Field(gt=0)] = 1.0
    standardise: bool = True
    frequencies: list[float] = []
    gaussian_factor: Literal["none", "fixed", "learned"] = "none"
    base: str | None = None
    average: Share = 0.0


class SamplerSettings(_Section):
    """The chains. A step size is a number, or knots [[iteration, value], …] along the chain.

    `resample_below` 0 anneals without resampling.
    """

    kind: Literal["langevin", "mala", "hmc"] = "langevin"
    num_steps: Annotated[int, Field(ge=0)]
    num_chains: Count | None = None
    step_size: float | KnotList
    displacement: float | None = None
    energy_norm: float | None = None
    target_acceptance: float | None = None
    adapt_until: int | None = None
    num_leapfrog: int = 5
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
    of lsd: λ, the critic's layers, its steps for each update, its learning rate (that of the energy by
    default), its Adam's β and how its trace is computed.
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
    critic_width: Count = 300
    critic_layers: Count = 2
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
    whose weight is 1.
    """

    name: Literal["data", "noise", "persistent", "refresh", "hybrid", "none"]
    lam: float = 25.0
    bank_size: Count = 10_000
    refresh: Share = 0.05
    beta: float | list[tuple[int, float]] = 0.0
    beta_on: Literal["noise", "data", "both"] = "both"
    variant: Literal["default", "no_positive", "batch_corrected", "true_objective"] = "default"
    pooled: bool = False


class OptimizerSettings(_Section):
    """Any optimiser of torch.optim by name, and how its rate falls."""

    name: str = "Adam"
    learning_rate: float = 1e-3
    decay: Literal["none", "linear", "cosine", "geometric"] = "none"
    decay_from: Share = 0.6
    final_rate: Annotated[float, Field(gt=0)] = 0.01
    warmup: Annotated[int, Field(ge=0)] = 0
    clip_norm: float | None = None
    options: dict[str, float | bool | list[float]] = {}


class GuardConfig(_Section):
    """See `burnin.training.GuardSettings`."""

    enabled: bool = True
    window: int = 200
    warmup: int = 100
    threshold: float = 30.0
    patience: int = 10
    remedy: Literal["learning_rate", "step_size", "none"] = "learning_rate"
    factor: float = 0.5
    tries: int = 3


class StudySettings(_Section):
    """How a trained model is judged."""

    samples: Count = 5000
    distance_sets: Annotated[int, Field(ge=5)] = 12
    long_chains: Count = 1000
    long_steps: Count = 20_000
    data_chains: Count = 1000
    data_steps: Count = 10_000
    grid_points: Annotated[int, Field(ge=2)] = 321
    cooling_steps: Annotated[int, Field(ge=10)] = 1000
    likelihood_particles: Annotated[int, Field(ge=0)] = 256


class Expectation(_Section):
    """A number that the recipe's table must show: a bound, or a multiple of another scheme's number."""

    scheme: str
    metric: str
    at_most: float | None = None
    at_least: float | None = None
    at_least_times: float | None = None
    of_scheme: str = "hybrid"
    claim: bool = False

    def describe(self) -> str:
        """The expectation in words."""
        name = f"{self.scheme}'s {self.metric}"
        if self.at_most is not None:
            return f"{name} ≤ {self.at_most:g}"
        if self.at_least is not None:
            return f"{name} ≥ {self.at_least:g}"
        return f"{name} ≥ {self.at_least_times:g} × {self.of_scheme}'s"


class Part(_Section):
    """A section of recipes that train no model, defined where they are used: unknown keys are errors too."""


class Recipe(_Section):
    """What every recipe says of itself: its name, its cost, what it shows and what it must show."""

    title: str
    cost: str = ""
    about: str = ""
    expected: list[Expectation] = []


class Config(Recipe):
    """Everything that decides a run."""

    run: RunSettings = RunSettings()
    data: DataSettings
    model: ModelSettings
    objective: ObjectiveSettings = ObjectiveSettings()
    scheme: SchemeSettings = SchemeSettings(name="none")
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
        if self.objective.name in NOISED and self.objective.noise_sd is None:
            raise ValueError(f"objective.noise_sd is missing: {self.objective.name} adds noise of that size")
        return self

    def further_samplers(self) -> list[SamplerSettings]:
        """Samplers beside the scheme's own, each `sampler` with its changes, pooled in one contrast."""
        own = self.sampler.model_dump(exclude_unset=True)
        return [
            _validated(SamplerSettings, {**own, **changes}, "more_samplers") for changes in self.more_samplers
        ]

    def noise_sampler(self) -> SamplerSettings:
        """The sampler of chains that start from noise: `sampler` with `sampler_from_noise` over it."""
        table = {**self.sampler.model_dump(exclude_unset=True), **self.sampler_from_noise}
        return _validated(SamplerSettings, table, "sampler_from_noise")

    def test_sampler(self) -> SamplerSettings | None:
        """The sampler that generates from noise once training is over, where it is none of training's:
        the one that training has for it, with `sampler_at_test` over it."""
        if not self.sampler_at_test:
            return None
        own = self.noise_sampler() if self.scheme.name in FROM_NOISE else self.sampler
        table = {**own.model_dump(exclude_unset=True), **self.sampler_at_test}
        return _validated(SamplerSettings, table, "sampler_at_test")


MEASURED = "measured"
"""The folder of the recipes that train no model: what they say is measured by `burnin reproduce`."""


def recipe_names(folder: str = "") -> list[str]:
    """The names of the recipes that come with burnin, of those that train a model or of another folder's.

    Example:
        >>> "rings" in recipe_names(), "measured/rbm-power" in recipe_names(MEASURED)
        (True, True)
    """
    place = resources.files("burnin.recipes").joinpath(folder)
    names = sorted(p.name.removesuffix(".toml") for p in place.iterdir() if p.name.endswith(".toml"))
    return [f"{folder}/{name}" if folder else name for name in names]


def load_recipe(kind: type[Section], recipe: str, changes: Sequence[str] = ()) -> Section:
    """A recipe of any kind by name or path, with ``key=value`` changes.

    Arguments:
        kind: what it is read as.
        recipe: its name, or the path of a .toml file.
        changes: such as ``run.seed=1``.
    """
    table = _read(recipe)
    for change in changes:
        _set(table, change)
    return _validated(kind, table, recipe)


def load_head(recipe: str) -> Recipe:
    """What a recipe of any kind says of itself.

    Example:
        >>> load_head("rings").title
        '10-D rings'
    """
    table = _read(recipe)
    return _validated(Recipe, {key: table[key] for key in Recipe.model_fields if key in table}, recipe)


def load_config(recipe: str, changes: Sequence[str] = ()) -> Config:
    """A recipe by name or path, with ``key=value`` changes such as ``run.updates=100``.

    Example:
        >>> load_config("rings", ["run.seed=7"]).run.seed
        7
    """
    if recipe in recipe_names(MEASURED):
        raise InputError(f"{recipe} trains no model; `burnin reproduce` measures what it says")
    config = load_recipe(Config, recipe, changes)
    config.noise_sampler()
    config.test_sampler()
    config.further_samplers()
    if config.data.file is None:
        return config
    # Absolute, so that the run can be resumed and judged from any folder.
    data = config.data.model_copy(update={"file": str(Path(config.data.file).resolve())})
    return config.model_copy(update={"data": data})


def dump_config(config: Config) -> str:
    """The complete configuration as TOML."""
    return tomli_w.dumps(config.model_dump(exclude_none=True, mode="json"))


def read_run_config(folder: Path) -> Config:
    """The configuration of a run's folder."""
    path = folder / "config.toml"
    if not path.is_file():
        raise InputError(f"{folder} is no run: it has no config.toml")
    return _validated(Config, _parse(_text(path), str(path)), str(path))


def in_folder(config: Config, folder: Path) -> Config:
    """The configuration with the files that it names looked for in the run's folder, wherever that is now."""

    def here(settings: Section, *keys: str) -> Section:
        named = {key: getattr(settings, key) for key in keys}
        found = {key: str(folder / Path(name).name) for key, name in named.items() if name is not None}
        return settings.model_copy(update=found)

    data, model = here(config.data, "rows", "pictures"), here(config.model, "base")
    return config.model_copy(update={"data": data, "model": model})


def _read(recipe: str, above: tuple[str, ...] = ()) -> dict[str, Any]:
    if recipe in above:
        raise InputError(f"the recipe {recipe} is its own base: {' → '.join([*above, recipe])}")
    table = _read_one(recipe)
    base = table.pop("base", None)
    if base is None:
        return table
    below = _read(str(base), (*above, recipe))
    below.pop("expected", None)  # what is expected of the base was measured with its settings
    return _merged(below, table)


def _merged(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    merged = dict(below)
    for key, value in above.items():
        old = merged.get(key)
        merged[key] = _merged(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return merged


def _read_one(recipe: str) -> dict[str, Any]:
    if recipe.endswith(".toml"):
        path = Path(recipe)
        if not path.is_file():
            raise InputError(f"there is no recipe file {recipe}")
        return _parse(_text(path), recipe)
    names = recipe_names()
    if recipe not in [*names, *recipe_names(MEASURED)]:
        raise InputError(
            f"there is no recipe {recipe!r}{nearest(recipe, names)}; `burnin recipes` lists them, "
            "and a file of your own ends in .toml"
        )
    text = resources.files("burnin.recipes").joinpath(f"{recipe}.toml").read_text(encoding="utf-8")
    return _parse(text, recipe)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text, so no TOML") from error


def _parse(text: str, where: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{where} is not valid TOML: {error}") from error


def _set(table: dict[str, Any], change: str) -> None:
    key, equals, value = change.partition("=")
    if not equals or not key.strip():
        raise InputError(f"--set {change!r} is not of the form key=value, such as run.updates=100")
    try:
        parsed = tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        parsed = value.strip()
    *parents, last = key.strip().split(".")
    for parent in parents:
        inner = table.setdefault(parent, {})
        if not isinstance(inner, dict):
            raise InputError(f"--set {change!r}: {parent!r} is no section")
        table = inner
    table[last] = parsed


def _validated(kind: type[Section], table: Mapping[str, Any], where: str) -> Section:
    try:
        return kind.model_validate(table)
    except ValidationError as error:
        raise InputError(f"{where}: {'; '.join(_explain(kind, error))}") from error


def _explain(kind: type[BaseModel], error: ValidationError) -> Iterator[str]:
    for problem in error.errors():
        path = [str(part) for part in problem["loc"]]
        key = ".".join(path)
        if problem["type"] == "extra_forbidden":
            yield f"unknown key {key!r}{nearest(path[-1], _known_keys(kind, path[:-1]))}"
        elif problem["type"] == "missing":
            yield f"{key} is missing"
        elif not path:  # of the whole, not of one key: the message says which
            yield problem["msg"].removeprefix("Value error, ")
        else:
            yield f"{key} = {problem['input']!r}: {problem['msg']}"


def _known_keys(kind: type[BaseModel], path: Sequence[str]) -> list[str]:
    for part in path:
        field = kind.model_fields.get(part)
        inner = field.annotation if field is not None else None
        if isinstance(inner, type) and issubclass(inner, BaseModel):
            kind = inner
    return list(kind.model_fields)


def nearest(name: str, known: Sequence[str]) -> str:
    """A hint at the nearest known name, to put behind an error, or nothing.

    Example:
        >>> nearest("lerning_rate", ["learning_rate", "decay"])
        "; did you mean 'learning_rate'?"
    """
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f"; did you mean {close[0]!r}?" if close else ""
