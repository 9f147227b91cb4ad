"""Scores by pytorch-ood's convention: the larger, the more of an outlier."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.exceptions import NotFittedError
from torch.utils.data import DataLoader, TensorDataset

from burnin import EnergyDensity
from burnin.assemble import load_model
from burnin.core import InputError
from burnin.interop import EnergyDetector


def test_a_fitted_density_scores_by_minus_its_logarithm(density: EnergyDensity) -> None:
    rows = np.array([[0.0, 10.0], [4.0, 25.0], [0.0, -1.0]])
    scores = EnergyDetector(density).predict(torch.from_numpy(rows))
    assert scores[:2].numpy() == pytest.approx(-density.score_samples(rows[:2]), rel=1e-6)
    assert scores[0] < scores[1] < scores[2] == float("inf")  # beyond a bound
    with pytest.raises(InputError, match="3 columns; the table has 2"):
        EnergyDetector(density)(torch.zeros(1, 3))


def test_a_run_scores_by_its_energy(run_folder: Path) -> None:
    detector, model = EnergyDetector(run_folder), load_model(run_folder)
    x = torch.randn(5, 10, generator=torch.Generator().manual_seed(0))
    assert torch.equal(detector(x), model.energy(x) / model.temperature)
    assert detector.fit([]) is detector, "what is trained stays as it is"
    assert torch.equal(detector.predict_features(x), detector(x))


def test_an_estimator_is_fitted_to_the_inliers_of_a_loader() -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.cat([torch.randn(60, 2, generator=generator), 50 + torch.randn(20, 2, generator=generator)])
    y = torch.cat([torch.zeros(60), -torch.ones(20)]).long()
    unfitted = EnergyDensity(max_updates=5, width=4, particles=8, random_state=0)
    detector = EnergyDetector(unfitted)
    with pytest.raises(NotFittedError):
        detector.predict(x)
    loader = DataLoader(TensorDataset(x, y), batch_size=32)
    scores = detector.fit(loader).predict(x)
    # Had the rows with negative labels been fitted, they would not be far away.
    assert scores[60:].min() > 10 * scores[:60].max().abs()
    same = EnergyDetector(EnergyDensity(max_updates=5, width=4, particles=8, random_state=0))
    assert torch.equal(same.fit_features(x, y)(x), scores)
    with pytest.raises(InputError, match="no batches"):
        detector.fit([])
