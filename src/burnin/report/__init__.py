"""Plots and the HTML page."""

from burnin.report.page import Page, Picture

__all__ = ["Page", "Picture"]
