"""EnergyDensity as a user of scikit-learn meets it: its contract, and a density held against known ones."""

from __future__ import annotations

import math
import pickle
from functools import cache
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import burnin
from burnin import EnergyDensity
from burnin.core import InputError
from burnin.data import Frame

SMALL: dict[str, Any] = {
    "components": 1,
    "max_updates": 4,
    "width": 4,
    "num_steps": 2,
    "batch_size": 8,
    "particles": 8,
}
NOT_OURS = {"check_array_api_input"}
"""Checks of scikit-learn that do not apply: of arrays that are not numpy's, which are not promised."""


def test_scikit_learn_accepts_it() -> None:
    found = check_estimator(EnergyDensity(**SMALL), on_fail=None, on_skip=None)
    assert [(one["check_name"], one["exception"]) for one in found if one["status"] == "failed"] == []
    skipped = {one["check_name"] for one in found if one["status"] == "skipped"}
    assert skipped <= NOT_OURS
    assert sum(one["status"] == "passed" for one in found) > 40


def two_clusters(n: int, seed: int) -> NDArray[np.float64]:
    """Two Gaussians of sd 0.5 at ±2, one above the other by half, in units of 1,000."""
    stream = np.random.default_rng(seed)
    side = np.where(stream.random(n) < 0.6, 2.0, -2.0)
    noise = 0.5 * stream.normal(size=(n, 2))
    return np.asarray(1000 * (noise + np.stack([side, 0.5 * side], 1)))


def log_truth(x: NDArray[np.float64]) -> NDArray[np.float64]:
    each = [
        share * stats.multivariate_normal(1000 * np.array([c, 0.5 * c]), 500.0**2).pdf(x)
        for share, c in ((0.6, 2.0), (0.4, -2.0))
    ]
    return np.asarray(np.log(sum(each)))


@cache
def fitted() -> EnergyDensity:
    """Trained once for the tests that look at a good fit."""
    return EnergyDensity(max_updates=600, random_state=0).fit(two_clusters(1000, 0))


def test_the_density_is_near_the_truth_and_says_how_it_was_normalised() -> None:
    x = two_clusters(2000, 1)
    density = fitted()
    gap = log_truth(x) - density.score_samples(x)  # its mean is KL(true ‖ model)
    assert gap.mean() < 0.15
    gaussian = stats.multivariate_normal(x.mean(0), np.cov(x.T)).logpdf(x)
    assert density.score(x) > gaussian.mean() + 0.5
    assert density.normaliser_.by == "a grid"
    assert density.normaliser_.trusted


def test_the_density_integrates_to_1() -> None:
    axis = np.linspace(-6000, 6000, 161)
    grid = np.stack(np.meshgrid(axis, axis), -1).reshape(-1, 2)
    total = np.exp(fitted().score_samples(grid)).sum() * (axis[1] - axis[0]) ** 2
    assert abs(total - 1) < 0.02


def test_samples_are_of_both_clusters_in_their_shares_and_units() -> None:
    x = fitted().sample(2000, random_state=1)
    assert x.shape == (2000, 2)
    share = (x[:, 0] > 0).mean()
    # The model's own share may be off by some; the truth is 0.6 ± 0.011.
    assert abs(share - 0.6) < 0.12
    right = x[x[:, 0] > 0]
    assert np.abs(right.mean(0) - [2000, 1000]).max() < 150
    assert np.abs(right.std(0) - 500).max() < 150
    np.testing.assert_array_equal(x, fitted().sample(2000, random_state=1))
    assert not np.array_equal(x, fitted().sample(2000, random_state=2))


def test_outliers_are_the_share_that_was_asked_for_and_what_lies_far_off() -> None:
    density, x = fitted(), two_clusters(1000, 0)
    assert (density.predict(x) == -1).sum() == 50
    far = np.array([[0.0, 4000.0], [9000.0, 0.0], [-4000.0, 4000.0]])
    assert density.predict(far).tolist() == [-1, -1, -1]
    assert density.predict([[2000.0, 1000.0]]).tolist() == [1]
    np.testing.assert_allclose(density.decision_function(x), density.score_samples(x) - density.offset_)


def test_three_dimensions_are_normalised_by_annealing() -> None:
    x = np.random.default_rng(0).normal(size=(400, 3))
    density = EnergyDensity(max_updates=50, random_state=0).fit(x)
    z = density.normaliser_
    assert z.by == "annealed importance sampling"
    assert z.low < z.value < z.high
    truth = stats.norm.logpdf(x).sum(1).mean()
    # Fitted to 340 rows with a Gaussian to start from: (d + d(d+1)/2)/(2n) in theory, some more in practice.
    assert abs(density.score(x) - truth) < 0.1 + (z.high - z.low)
    mean = density.mean_density(x)
    assert mean.low < mean.nats < mean.high
    assert mean.bits[0] == pytest.approx(-mean.nats / (3 * math.log(2)))


def test_the_same_seed_gives_the_same_model_and_a_copy_forgets_it() -> None:
    x = two_clusters(100, 0)
    first = EnergyDensity(**SMALL, random_state=3).fit(x)
    scores = first.score_samples(x)
    np.testing.assert_array_equal(clone(first).fit(x).score_samples(x), scores)
    assert not np.array_equal(clone(first).set_params(random_state=4).fit(x).score_samples(x), scores)
    assert not hasattr(clone(first), "fitted_")


def test_pickle_and_joblib_keep_the_model_and_can_go_on(tmp_path: Path) -> None:
    x = two_clusters(100, 0)
    density = EnergyDensity(**SMALL, random_state=0).fit(x)
    density.sample(3)  # with whatever was compiled for the chains
    joblib.dump(density, tmp_path / "density.joblib")
    for again in (pickle.loads(pickle.dumps(density)), joblib.load(tmp_path / "density.joblib")):
        np.testing.assert_array_equal(again.score_samples(x), density.score_samples(x))
        np.testing.assert_array_equal(again.sample(5), density.sample(5))
        assert again.partial_fit(x).n_updates_ >= density.n_updates_


def test_partial_fit_goes_on_with_rows_of_another_law() -> None:
    """From two clusters to one of them, whose density is then higher by log 1/0.6 = 0.51."""
    x, other = two_clusters(500, 0), two_clusters(1000, 5)
    density = EnergyDensity(max_updates=100, random_state=0).partial_fit(x)
    right, seen = other[other[:, 0] > 0], x[x[:, 0] > 0]
    before, updates = density.score(right), density.n_updates_
    for _ in range(3):
        density.partial_fit(seen)
    assert density.n_updates_ > updates + 100
    assert density.score(right) > before + 0.2


def test_in_a_pipeline_and_a_search() -> None:
    x = two_clusters(120, 0)
    pipeline = make_pipeline(StandardScaler(), EnergyDensity(**SMALL, random_state=0))
    assert np.isfinite(pipeline.fit(x).score(x))
    search = GridSearchCV(pipeline, {"energydensity__width": [2, 4]}, cv=2).fit(x)
    assert search.best_params_["energydensity__width"] in (2, 4)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_a_data_frame_gives_its_names() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(two_clusters(60, 0), columns=["length", "width"])
    density = EnergyDensity(**SMALL, random_state=0).fit(frame)
    assert density.feature_names_in_.tolist() == ["length", "width"]
    assert density.sample_frame(2).names == ("length", "width")


def test_whole_numbers_come_out_whole_and_within_bounds() -> None:
    x = np.random.default_rng(0).poisson(1.5, size=(200, 2)).astype(float)
    density = EnergyDensity(max_updates=25, bounds={0: (0, None), 1: (0, None)}, random_state=0).fit(x)
    drawn = density.sample(500)
    np.testing.assert_array_equal(drawn, np.round(drawn))
    assert drawn.min() == 0
    assert density.score_samples([[-1.0, 2.0]])[0] == -math.inf
    every = np.stack(np.meshgrid(np.arange(0.0, 40), np.arange(0.0, 40)), -1).reshape(-1, 2)
    # The mass within the bounds is a share of 2,000 draws: 4 standard errors, and what chains are short of.
    assert abs(np.exp(density.score_samples(every)).sum() - 1) < 0.1


def test_words_by_a_frame() -> None:
    stream = np.random.default_rng(0)
    colour = stream.choice(["red", "blue"], 200, p=[0.8, 0.2])
    frame = Frame({"x": stream.normal(size=200) + 3 * (colour == "red"), "colour": colour.astype(object)})
    density = EnergyDensity(max_updates=50, random_state=0).fit(frame)
    drawn = density.sample_frame(1000)
    share = (drawn.columns["colour"] == "red").mean()
    assert abs(share - (colour == "red").mean()) < 0.1
    scores = density.score_samples(
        Frame({"x": np.array([3.0, 3.0]), "colour": np.array(["red", "grey"], object)})
    )
    assert np.isfinite(scores[0])
    assert scores[1] == -math.inf
    with pytest.raises(InputError, match="colour holds words, not numbers; use sample_frame"):
        density.sample(3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"contamination": 0.7}, "contamination is 0.7"),
        ({"contamination": 0.0}, "contamination is 0.0"),
        ({"minutes": -1.0}, "minutes is -1.0"),
        ({"patience": 0}, "patience is 0"),
        ({"components": 99}, "components is 99"),
        ({"validation_fraction": 1.0}, "validation_fraction is 1.0"),
    ],
)
def test_bad_settings_are_refused_by_fit(change: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        EnergyDensity(**{**SMALL, **change}).fit(two_clusters(50, 0))


def test_time_is_kept() -> None:
    density = EnergyDensity(minutes=0.02, max_updates=100_000, patience=100_000, random_state=0)
    density.fit(two_clusters(200, 0))
    assert density.fitted_.about["trained_for"] < 100_000


def test_it_says_what_it_chose(capsys: pytest.CaptureFixture[str]) -> None:
    EnergyDensity(max_updates=2, random_state=0, verbose=True).fit(two_clusters(100, 0))
    said = capsys.readouterr().out
    assert "x1, x2: continuous" in said
    assert "network: 3 × 32 units, noise of" in said
    assert "after the training: temperature" in said
    assert "base: 5 mixtures of" in said
    assert "acceptance " in said


def test_import_is_lazy() -> None:
    assert "EnergyDensity" in burnin.__all__
    with pytest.raises(AttributeError, match="no attribute 'EnergyDensities'"):
        _ = burnin.EnergyDensities
