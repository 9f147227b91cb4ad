"""The pictures of training show what was logged, over its own updates, with the bounds drawn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection

from burnin.diagnostics import MONITORS, ChainNoise, diagnose
from burnin.report.drawn import Panel
from burnin.report.page import Notes, Panels
from burnin.report.summary import training_blocks
from burnin.report.training import (
    diagnosis_figure,
    diagnosis_panels,
    losses_panels,
    monitors_panels,
    smooth,
)
from tests.report.test_report import METRICS, assert_drawn, png_of

NOISE = {"noise": ChainNoise(temperature=0.5, dim=2)}


def rows(n: int, *, arms: tuple[str, ...] = ("noise",), beta_from: int | None = None) -> list[dict[str, Any]]:
    d = np.random.default_rng(0).normal(size=(n, len(arms)))
    made: list[dict[str, Any]] = []
    for i in range(n):
        row: dict[str, Any] = {"step": i + 1, "loss": 0.0}
        for j, arm in enumerate(arms):
            names = {"d": d[i, j], "r": 2 + 0.1 * d[i, j], "std": 1.0, "snr": d[i, j], "step_size": 0.1}
            row |= {f"{name}/{arm}": float(value) for name, value in names.items()}
            if beta_from is not None and i >= beta_from:
                row |= {f"{name}/{arm}": 0.1 * k for k, name in enumerate(MONITORS, 1)}
        made.append(row)
    return made


def test_the_four_panels_show_what_was_logged() -> None:
    found = diagnose([*rows(200), {"step": 7, "event": "rolled back"}], NOISE)
    figure = diagnosis_figure(found, temperature=0.5)
    d, r, cross, auto = figure.axes
    np.testing.assert_allclose(np.asarray(d.lines[0].get_ydata()), found.arms[0].series.d / 0.5)
    np.testing.assert_allclose(np.asarray(r.lines[0].get_ydata()), found.arms[0].series.r)
    level = np.asarray(r.lines[1].get_ydata(), dtype=float)
    np.testing.assert_allclose(level, np.sqrt(2 * 0.5 * 2 / 0.1))
    correlations = found.arms[0].correlations
    assert correlations is not None
    np.testing.assert_array_equal(np.asarray(cross.lines[0].get_xdata()), np.arange(-15, 16))
    np.testing.assert_array_equal(np.asarray(cross.lines[0].get_ydata()), correlations.cross)
    np.testing.assert_array_equal(np.asarray(auto.lines[0].get_ydata()), correlations.d)
    np.testing.assert_array_equal(np.asarray(auto.lines[1].get_ydata()), correlations.r)
    band = auto.collections[0]
    assert isinstance(band, PolyCollection)
    heights = np.concatenate([path.vertices for path in band.get_paths()])[:, 1]
    assert heights.max() == pytest.approx(correlations.d_bounds.max())
    assert heights.min() == pytest.approx(-correlations.d_bounds.max())
    assert_drawn(png_of(figure), least=0.01)


def test_every_arm_has_a_colour_of_its_own() -> None:
    figure = diagnosis_figure(diagnose(rows(100, arms=("data", "noise"))), temperature=1.0)
    for axes in figure.axes:
        legend = axes.get_legend()
        assert legend is not None
        assert [text.get_text() for text in legend.get_texts()] == ["data", "noise"]
        lines = dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
        assert lines["data"].get_color() != lines["noise"].get_color()


@pytest.mark.parametrize("updates", [1, 2, 3, 30])
def test_very_short_runs_are_drawn(updates: int) -> None:
    figure = diagnosis_figure(diagnose(METRICS[:updates], NOISE), temperature=0.5)
    assert_drawn(png_of(figure), least=0.01)
    assert ("too few updates" in [text.get_text() for text in figure.axes[3].texts]) == (updates < 3)


def test_a_wide_span_is_drawn_on_a_logarithmic_axis() -> None:
    for growth, scale in ((1.0, "linear"), (1.1, "log")):
        grown = [{**row, "r/noise": 2 * growth**i} for i, row in enumerate(rows(60))]
        figure = diagnosis_figure(diagnose(grown), temperature=1.0)
        assert figure.axes[1].get_yscale() == scale


def test_an_arm_without_force_is_drawn() -> None:
    still = [{**row, "r/noise": 0.0} for row in rows(60)]
    assert_drawn(png_of(diagnosis_figure(diagnose(still, NOISE), temperature=1.0)), least=0.01)


@pytest.mark.parametrize("n", [1, 39, 80, 120, 1000, 1019])
def test_a_smoothed_line_stays_on_the_line(n: int) -> None:
    """Also at both ends, where a window that is cut would bend it."""
    update = np.arange(1.0, n + 1)
    where, values = smooth(update, 3 * update - 7)
    np.testing.assert_allclose(values, 3 * where - 7)
    assert len(where) == n - max(1, n // 40) + 1


def axes_of(panels: tuple[Panel, ...]) -> list[Axes]:
    return [axes for panel in panels for axes in panel.figure.axes]


def test_the_panels_one_by_one_show_the_same_as_the_figure() -> None:
    found = diagnose(rows(200), NOISE)
    panels = diagnosis_panels(found, temperature=0.5)
    for axes, alone in zip(diagnosis_figure(found, 0.5).axes, axes_of(panels), strict=True):
        for line, same in zip(axes.lines, alone.lines, strict=True):
            np.testing.assert_array_equal(np.asarray(line.get_ydata()), np.asarray(same.get_ydata()))
    assert f"noise {found.arms[0].series.d[-1] / 0.5:.3g}" in panels[0].alt


def test_the_spread_of_the_losses_is_drawn_where_it_was_logged() -> None:
    panels = losses_panels(diagnose(rows(100, arms=("data", "noise"))))
    assert [len(axes.lines) for axes in axes_of(panels)] == [2, 2]
    for panel in panels:
        assert_drawn(png_of(panel.figure), least=0.01)
    assert losses_panels(diagnose(METRICS)) == ()


def test_the_monitors_are_drawn_where_there_are_any() -> None:
    shown = axes_of(monitors_panels(diagnose(rows(100, beta_from=60))))
    assert len(shown) == len(MONITORS)
    for k, axes in enumerate(shown, 1):
        (line,) = axes.lines
        assert np.asarray(line.get_xdata(), dtype=float).min() >= 61  # β was 0 before
        np.testing.assert_allclose(np.asarray(line.get_ydata()), 0.1 * k)
    assert monitors_panels(diagnose(rows(100))) == ()


def test_the_reports_section_has_figures_and_sentences() -> None:
    blocks = training_blocks(diagnose(rows(100, beta_from=0), NOISE), 1.0, [])
    titles = [block.title for block in blocks if isinstance(block, Panels)]
    assert titles == ["Training", "Spread of the losses", "β-weights"]
    (notes,) = [block for block in blocks if isinstance(block, Notes)]
    assert any("Oscillation unknown" in line for line in notes.lines)
    assert len(training_blocks(diagnose(METRICS), 1.0, [])) == 2
