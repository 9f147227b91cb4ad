"""Stein discrepancies: test and rank models from data and the models' scores alone, without a sample."""
