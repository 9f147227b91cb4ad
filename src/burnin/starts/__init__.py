"""Where chains begin: at data, at noise, or where earlier chains ended."""

from burnin.starts.bank import Bank
from burnin.starts.data import FromData
from burnin.starts.noise import FromNoise

__all__ = ["Bank", "FromData", "FromNoise"]
