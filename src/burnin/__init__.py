"""burnin: train, sample and judge energy-based models."""
