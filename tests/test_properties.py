"""What must hold for any numbers: detailed balance, reversibility, gradients, and ways there and back.

Hypothesis draws the settings, and seeds for the tensors, and looks for the smallest that fail. It is
derandomised: the same cases at every run of the same code, whose numbers it tries too.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st
from torch import Tensor

from burnin.config import dump_config, load_config, read_run_config
from burnin.core import Energy, Feed, InputError, Scheduled, energy_and_gradient
from burnin.data import EncodedRows, Encoding, Frame, Pictures
from burnin.energies import MLP, GaussianBernoulliRBM
from burnin.evaluation import MixtureBase
from burnin.objectives import Negatives, ScoreMatching, contrast
from burnin.samplers import HMC, MALA
from burnin.training.checkpoint import Snapshot, load_checkpoint, save_checkpoint

some = settings(
    derandomize=True,
    max_examples=20,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.differing_executors],
)
SEEDS = st.integers(0, 2**32)
DIMS = st.integers(1, 5)
ARMS = st.lists(st.tuples(st.integers(1, 9), st.floats(0, 30)), min_size=1, max_size=3)
TEMPERATURES = st.floats(0.05, 20.0)


@pytest.fixture(autouse=True)
def double() -> Iterator[None]:
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def stream(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def normal(seed: int, *shape: int) -> Tensor:
    return torch.randn(*shape, generator=stream(seed))


def random_energy(dim: int, seed: int) -> Energy:
    """A network on a quadratic that is not round: no symmetry that a wrong sign could hide in."""
    net = MLP(dim, width=6, depth=2, generator=stream(seed)).requires_grad_(False)
    matrix, centre = normal(seed + 1, dim, dim), normal(seed + 2, dim)
    return lambda x: 3 * net(x) + 0.5 * ((x - centre) @ matrix).square().sum(1)


def certain(noise: Tensor, temperature: float) -> Feed:
    """A feed whose uniform numbers are 0: any move that can be accepted is."""
    return Feed(noise, torch.full((len(noise) + 1,), -40.0), Scheduled(temperature))


def with_all_digits(acceptance: Tensor) -> Tensor:
    """Where an acceptance is a normal number: below 2e-308 digits are lost, and so those of its logarithm."""
    return acceptance >= torch.finfo(acceptance.dtype).tiny


def log_normal(x: Tensor, mean: Tensor, variance: Tensor) -> Tensor:
    each = -0.5 * (x - mean).square() / variance - 0.5 * (2 * math.pi * variance).log()
    return each.sum(1)


@some
@example(seed=617291, dim=5, temperature=6.0, step=0.38671875)  # an acceptance of 1e-319 is among these
@given(SEEDS, DIMS, TEMPERATURES, st.floats(1e-3, 0.5))
def test_mala_is_in_detailed_balance(seed: int, dim: int, temperature: float, step: float) -> None:
    """p(x) q(x→y) a(x→y) = p(y) q(y→x) a(y→x), for q written down anew."""
    energy, scale = random_energy(dim, seed), 0.5 + torch.rand(dim, generator=stream(seed + 3))
    sampler, x = MALA(step, temperature), normal(seed + 4, 8, dim)
    there = sampler.init(energy, x, scale=scale)
    after, forth = sampler.step(energy, there, certain(normal(seed + 5, 8, dim), temperature))
    moved = (after.position != x).all(1)
    assume(bool(moved.any()))
    y = after.position
    variance = 2 * temperature * step * scale
    onward, backward = (z - step * scale * energy_and_gradient(energy, z)[1] for z in (x, y))
    back = sampler.init(energy, y, scale=scale)
    _, home = sampler.step(energy, back, certain((x - backward) / variance.sqrt(), temperature))
    flow = -energy(x) / temperature + log_normal(y, onward, variance) + forth.acceptance.log()
    counterflow = -energy(y) / temperature + log_normal(x, backward, variance) + home.acceptance.log()
    assert torch.maximum(forth.acceptance, home.acceptance)[moved].sub(1).abs().max() < 1e-9
    told = moved & with_all_digits(forth.acceptance) & with_all_digits(home.acceptance)
    torch.testing.assert_close(flow[told], counterflow[told], rtol=1e-8, atol=1e-7)


@some
@given(SEEDS, DIMS, TEMPERATURES, st.floats(1e-3, 0.3), st.integers(1, 6))
def test_hmc_leads_back_and_is_in_detailed_balance(
    seed: int, dim: int, temperature: float, step: float, leaps: int
) -> None:
    """From the end, with the momentum turned round, a trajectory ends where it began, and exp(-H/T) a is
    the same there and back; the momentum at the end is that of a leapfrog written down anew."""
    energy, scale = random_energy(dim, seed), 0.5 + torch.rand(dim, generator=stream(seed + 3))
    sampler, x, noise = HMC(step, leaps, temperature), normal(seed + 4, 8, dim), normal(seed + 5, 8, dim)
    after, forth = sampler.step(energy, sampler.init(energy, x, scale=scale), certain(noise, temperature))
    spread = (temperature / scale).sqrt()
    y, momentum = x, noise * spread
    for _ in range(leaps):
        momentum = momentum - 0.5 * step * energy_and_gradient(energy, y)[1]
        y = y + step * scale * momentum
        momentum = momentum - 0.5 * step * energy_and_gradient(energy, y)[1]
    moved = (after.position != x).all(1)
    assume(bool(moved.any()))
    torch.testing.assert_close(after.position[moved], y[moved], rtol=1e-9, atol=1e-9)
    back = sampler.init(energy, after.position, scale=scale)
    home, returned = sampler.step(energy, back, certain(-momentum / spread, temperature))
    came = moved & (home.position != after.position).all(1)
    torch.testing.assert_close(home.position[came], x[came], rtol=1e-7, atol=1e-7)

    def hamiltonian(position: Tensor, start: Tensor) -> Tensor:
        return (energy(position) + 0.5 * (scale * start.square()).sum(1)) / temperature

    flow = -hamiltonian(x, noise * spread) + forth.acceptance.log()
    counterflow = -hamiltonian(y, -momentum) + returned.acceptance.log()
    told = came & with_all_digits(forth.acceptance) & with_all_digits(returned.acceptance)
    torch.testing.assert_close(flow[told], counterflow[told], rtol=1e-7, atol=1e-7)


@some
@given(
    SEEDS, TEMPERATURES, st.floats(1e-2, 0.5), st.lists(st.floats(-3, 3), min_size=2, max_size=9, unique=True)
)
def test_mala_flows_evenly_between_all_points_of_a_grid(
    seed: int, temperature: float, step: float, grid: list[float]
) -> None:
    """The matrix p(x) q(x→y) a(x→y) over all pairs of a random grid is symmetric."""
    energy, points = random_energy(1, seed), torch.tensor(grid).unsqueeze(1)
    n, spread = len(points), math.sqrt(2 * temperature * step)
    x, y = points.repeat_interleave(n, 0), points.repeat(n, 1)
    sampler = MALA(step, temperature)
    state = sampler.init(energy, x)
    # The noise that leads from each point to each.
    noise = (y - x + step * state.gradient) / spread
    _, info = sampler.step(energy, state, certain(noise, temperature))
    flow = -state.energy / temperature - 0.5 * noise.square().sum(1) + info.acceptance.log()
    matrix = flow.reshape(n, n)
    seen = matrix.isfinite() & matrix.T.isfinite()  # an acceptance below 1e-308 has no logarithm
    torch.testing.assert_close(matrix[seen], matrix.T[seen], rtol=1e-8, atol=1e-6)


@some
@given(SEEDS, st.integers(1, 4), st.integers(1, 5), TEMPERATURES)
def test_the_two_steps_of_gibbs_are_those_of_the_energy(
    seed: int, dim: int, hidden: int, temperature: float
) -> None:
    """exp(-E(x)/T) P(h | x) = Z P(h) N(x; b + κ B h, 1) for every state h: both steps keep the law."""
    machine = GaussianBernoulliRBM.random(dim, hidden, stream(seed), temperature=temperature)
    states = torch.cartesian_prod(*[torch.tensor([-1.0, 1.0])] * hidden).reshape(-1, hidden)
    x = 2 * normal(seed + 1, 6, dim)
    y = machine.coupling * x @ machine.weights + machine.hidden_bias
    hidden_given_x = torch.nn.functional.logsigmoid(2 * y.unsqueeze(1) * states).sum(2)
    centres = machine.visible_bias + machine.coupling * states @ machine.weights.T
    own = states @ machine.hidden_bias + 0.5 * centres.square().sum(1)
    visible_given_h = -0.5 * (x.unsqueeze(1) - centres).square().sum(2)
    there = -machine(x).unsqueeze(1) / temperature + hidden_given_x
    torch.testing.assert_close(there, own + visible_given_h, rtol=1e-9, atol=1e-9)


@some
@given(SEEDS, st.integers(1, 9), ARMS)
def test_the_contrast_of_a_linear_family_has_the_gradient_of_its_statistics(
    seed: int, n: int, arms: list[tuple[int, float]]
) -> None:
    """E(x) = θ·φ(x): the gradient is Σ over arms of weight · (⟨φ⟩ of the data - ⟨φ⟩ of the negatives)."""
    theta = normal(seed, 4).requires_grad_(True)

    def statistics(x: Tensor) -> Tensor:
        return torch.stack([x[:, 0], x.square().sum(1), x[:, 0] * x[:, 1], x[:, 1].sin()], 1)

    data = normal(seed + 1, n, 2)
    drawn = [Negatives(normal(seed + 2 + i, m, 2), weight) for i, (m, weight) in enumerate(arms)]
    loss, _ = contrast(lambda x: statistics(x) @ theta, data, drawn)
    (gradient,) = torch.autograd.grad(loss, [theta])
    mean = statistics(data).mean(0)
    expected = sum(arm.weight * (mean - statistics(arm.position).mean(0)) for arm in drawn)
    torch.testing.assert_close(gradient, expected, rtol=1e-10, atol=1e-10)


@some
@given(SEEDS, st.integers(1, 20), st.integers(1, 4), TEMPERATURES)
def test_score_matching_of_a_gaussian_has_the_gradient_of_its_formula(
    seed: int, n: int, dim: int, temperature: float
) -> None:
    """E = ½ xᵀAx, A symmetric: the loss ½⟨|Ax|²⟩/T² - tr A/T has the gradient (AC + CA)/2T² - 1/T,
    with C = ⟨xxᵀ⟩."""
    x, root = normal(seed, n, dim), normal(seed + 1, dim, dim)
    a = (root + root.T).requires_grad_(True)

    def energy(y: Tensor) -> Tensor:
        return 0.5 * ((y @ (0.5 * (a + a.T))) * y).sum(1)

    loss, _ = ScoreMatching(temperature).loss(energy, x, stream(seed))
    (gradient,) = torch.autograd.grad(loss, [a])
    second, held = x.T @ x / n, a.detach()
    expected = (held @ second + second @ held) / (2 * temperature**2) - torch.eye(dim) / temperature
    torch.testing.assert_close(gradient, expected, rtol=1e-9, atol=1e-9)


@some
@given(SEEDS, st.integers(1, 3), st.integers(1, 6), st.floats(-5, 5), st.floats(0.01, 10))
def test_pictures_lead_back_to_their_bytes(
    seed: int, channels: int, side: int, low: float, width: float
) -> None:
    pixels = torch.randint(256, (3, channels, side, side), generator=stream(seed)).to(torch.uint8)
    plain = Pictures(pixels).in_range(low, low + width)
    assert bool((plain.bytes(plain.rows(pixels)) == pixels).all())
    logits = plain.in_logits()
    assert bool((logits.bytes(logits.rows(pixels, stream(seed + 1))) == pixels).all())


NUMBERS = st.one_of(
    st.lists(st.integers(-1000, 1000).map(float), min_size=6, max_size=20),
    st.lists(st.integers(-999, 999).map(lambda n: n / 100), min_size=6, max_size=20),
    st.lists(st.floats(-1e6, 1e6, allow_subnormal=False), min_size=6, max_size=20),
)
TEXT = st.characters(codec="utf-8")
LEVELS = st.lists(st.text(TEXT, min_size=1, max_size=5), min_size=2, max_size=3, unique=True)


@some
@given(st.lists(NUMBERS, min_size=1, max_size=3), LEVELS, SEEDS)
def test_rows_of_tables_lead_back(numbers: list[list[float]], levels: list[str], seed: int) -> None:
    """Words and steps exactly, other numbers to the precision of their column."""
    rows = min(map(len, numbers))
    columns: dict[str, Any] = {f"n{i}": np.array(column[:rows]) for i, column in enumerate(numbers)}
    words = np.random.default_rng(seed).choice(np.array(levels, dtype=object), size=rows)
    frame = Frame({**columns, "words": words})
    try:
        encoding = Encoding.fit(frame)
    except InputError:
        assume(False)
    codes = encoding.codes(frame)
    again, good = encoding.decode(EncodedRows(encoding, codes).each(stream(seed)))
    assert good.all()
    assert again.columns["words"].tolist() == words.tolist()
    for name, values in columns.items():
        spread = float(np.ptp(values))
        np.testing.assert_allclose(again.columns[name], values, rtol=1e-9, atol=1e-7 * spread)
    with tempfile.TemporaryDirectory() as folder:
        encoding.save(Path(folder) / "encoding.json")
        assert Encoding.load(Path(folder) / "encoding.json") == encoding


@some
@given(SEEDS, st.integers(1, 4), st.integers(1, 3))
def test_whitening_by_a_mixture_leads_back(seed: int, dim: int, components: int) -> None:
    root = normal(seed, components, dim, dim).tril() + 2 * torch.eye(dim)
    factors = root * torch.sign(root.diagonal(dim1=1, dim2=2))[:, None, :]
    weights, means = torch.full((components,), -math.log(components)), normal(seed + 1, components, dim)
    base = MixtureBase(weights, means, factors)
    x = normal(seed + 2, 10, dim)
    torch.testing.assert_close(base.unwhiten(base.whiten(x)), x, rtol=1e-7, atol=1e-7)


KINDS = (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.uint8, torch.bool)
NAMES = st.text(TEXT, min_size=1, max_size=12).filter(lambda name: name != "__metadata__")
TENSORS = st.dictionaries(
    NAMES, st.tuples(st.sampled_from(KINDS), st.lists(st.integers(0, 4), max_size=3)), max_size=5
)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
LEAVES = st.none() | st.booleans() | st.integers(-(2**60), 2**60) | FLOATS | st.text(TEXT, max_size=10)
JSON = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(TEXT, max_size=5), inner, max_size=3),
    max_leaves=10,
)


@some
@given(TENSORS, st.dictionaries(st.text(TEXT, max_size=8), JSON, max_size=3), SEEDS)
def test_checkpoints_lead_back_to_every_bit(
    described: dict[str, tuple[torch.dtype, list[int]]], state: dict[str, Any], seed: int
) -> None:
    """Whatever bits: also those of NaN and of infinity."""
    tensors = {}
    for name, (kind, shape) in described.items():
        count = math.prod(shape) * kind.itemsize
        octets = torch.randint(2 if kind == torch.bool else 256, (count,), generator=stream(seed))
        tensors[name] = octets.to(torch.uint8).view(kind).reshape(shape)
    with tempfile.TemporaryDirectory() as folder:
        save_checkpoint(Path(folder), 7, Snapshot(tensors, state))
        again = load_checkpoint(Path(folder))
    assert again.state == state
    assert again.tensors.keys() == tensors.keys()
    for name, value in tensors.items():
        found = again.tensors[name]
        assert (found.dtype, found.shape) == (value.dtype, value.shape)
        assert bool((found.flatten().view(torch.uint8) == value.flatten().view(torch.uint8)).all())


@some
@given(
    st.integers(1, 10**9),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(1e-300, 1e300),
    st.lists(st.floats(-1e9, 1e9), max_size=4),
    st.text(TEXT, min_size=1, max_size=40),
)
def test_settings_lead_back_from_their_file(
    updates: int, seed: int, temperature: float, frequencies: list[float], title: str
) -> None:
    known = load_config("rings")
    config = known.model_copy(
        update={
            "title": title,
            "run": known.run.model_copy(update={"updates": updates, "seed": seed}),
            "model": known.model.model_copy(update={"temperature": temperature, "frequencies": frequencies}),
        }
    )
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "config.toml").write_text(dump_config(config), encoding="utf-8", newline="")
        assert read_run_config(Path(folder)) == config
