"""How fast chains run, here and elsewhere: `burnin bench`. Each contestant has a process of its own."""

from burnin.bench.beta_cost import measure_beta, write_beta
from burnin.bench.cases import CASES, Case, choose_cases
from burnin.bench.contestants import CONTESTANTS, Contestant
from burnin.bench.images import measure_images, write_images
from burnin.bench.measure import Settings, measure, settings_for
from burnin.bench.page import write_docs, write_page, write_summary

__all__ = [
    "CASES",
    "CONTESTANTS",
    "Case",
    "Contestant",
    "Settings",
    "choose_cases",
    "measure",
    "measure_beta",
    "measure_images",
    "settings_for",
    "write_beta",
    "write_docs",
    "write_images",
    "write_page",
    "write_summary",
]
