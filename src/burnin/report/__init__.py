"""Plots and the HTML page."""

from burnin.extras import require_extra

# Before the imports that would fail without them.
require_extra("matplotlib")
require_extra("jinja2")

from burnin.report.page import Page  # noqa: E402

__all__ = ["Page"]
