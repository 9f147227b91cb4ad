"""Plots and the HTML page."""

from burnin.report.page import Page

__all__ = ["Page"]
