"""Parts of a report: outliers, likelihood, cost, rows in the reader's units, slices, figures as SVG."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure

from burnin.core import InputError
from burnin.data import Pictures
from burnin.provenance import ORIGIN_FILE, read_origin, write_origin
from burnin.report import figures
from burnin.report.columns import Columns, Shown
from burnin.report.compared import compared
from burnin.report.cost import Cost, cost_facts, training_seconds
from burnin.report.drawn import themed
from burnin.report.likelihood import MeanLikelihood, likelihood_blocks
from burnin.report.outliers import Scored, outlier_pictures, outlier_rows
from burnin.report.page import Explorer, Facts, Listing, Panels
from burnin.report.slices import density_slices
from tests.report.test_report import judged

COLUMNS = Columns(("size", "colour"), (None, ("red", "blue")))


def test_outliers_are_listed_lowest_first_in_their_own_words() -> None:
    log_density = np.array([-1.0, -30.0, -2.0, -4.5])
    rows = np.array([[1.5, 0], [99.0, 1], [2.0, 0], [7.0, 1]])
    scored = Scored(log_density, True, "4 rows of the table", np.array([10, 20, 30, 40]), threshold=-4.0)
    listing, panels = outlier_rows(scored, COLUMNS, rows)
    assert isinstance(listing, Listing)
    assert listing.names == ("row", "log-density, nats", "percentile", "size", "colour")
    assert listing.rows[:2] == ((20, -30.0, 0.0, 99.0, "blue"), (40, -4.5, 25.0, 7.0, "blue"))
    assert listing.sorted_by == 1
    assert "2 of 4 rows of the table are outliers" in scored.lead()
    assert isinstance(panels, Panels)
    assert "-30" in panels.panels[0].alt


def test_without_a_normaliser_the_log_densities_say_so() -> None:
    scored = Scored(np.array([1.0, 2.0]), False, "2 draws")
    listing, _ = outlier_rows(scored, COLUMNS, np.array([[0.123456789, 0], [2.0, 1]]))
    assert isinstance(listing, Listing)
    assert listing.names[0] == "log-density + constant, nats"
    assert listing.rows[0][2] == 0.1235  # a draw: its last digits are of no use


def test_the_least_likely_pictures_have_their_numbers() -> None:
    pictures = Pictures(torch.zeros(40, 1, 3, 3, dtype=torch.uint8))
    scored = Scored(np.arange(40.0)[::-1].copy(), False, "40 pictures", np.arange(101, 141))
    grids, listing, _ = outlier_pictures(scored, pictures, pictures.rows(pictures.pixels[:40]))
    assert isinstance(listing, Listing)
    assert listing.rows[0] == (1, 140, 0.0)
    assert isinstance(grids, Panels)
    assert [panel.title for panel in grids.panels] == ["least likely", "likeliest"]


def test_bits_and_intervals_of_a_likelihood() -> None:
    """Of a standard normal in two dimensions: -log(2πe) nats, log2(2πe)/2 bits per dimension."""
    nats = -math.log(2 * math.pi * math.e)
    one = MeanLikelihood("rows", nats, nats - 0.1, nats + 0.2, 0.5, 2, "a grid")
    assert one.bits[0] == pytest.approx(math.log2(2 * math.pi * math.e) / 2)
    assert one.interval == pytest.approx((nats - 0.1 - 0.98, nats + 0.2 + 0.98))
    assert one.bits[1] < one.bits[0] < one.bits[2]
    facts, _ = likelihood_blocks((one, MeanLikelihood("truth", -2.0, -2.0, -2.0, 0.1, 2)))
    assert isinstance(facts, Facts)
    assert "-2.838 nats (-3.918 to -1.658)" in facts.rows[0][1]
    assert "log Z by a grid" in facts.rows[0][2]
    assert "known exactly" in facts.rows[1][2]


def test_the_cost_names_updates_time_machine_and_command(tmp_path: Path) -> None:
    write_origin(tmp_path)
    origin = read_origin(tmp_path)
    cost = Cost(625, 1025, 79.0, {"judging": 2.0}, origin, {}, 7)
    rows = {name: (value, meaning) for name, value, meaning in cost_facts(cost).rows}
    assert rows["updates"] == ("625", "the best of 1,025 that were made")
    assert rows["training"][0] == "1 min 19 s"
    assert rows["trained on"][0] == origin["machine"]
    assert f"torch {torch.__version__}" in rows["trained on"][1]
    assert rows["seed"][0] == "7"
    assert rows["command"][0].startswith("burnin")
    assert cost.training() == ("1 min 19 s", f"625 updates on {origin['machine']}")
    assert training_seconds([{"step": 1, "event": "nothing"}]) is None


def test_an_origin_is_written_once_and_a_damaged_one_is_refused(tmp_path: Path) -> None:
    assert read_origin(tmp_path) == {}
    (tmp_path / ORIGIN_FILE).write_text('{"machine": "first"}', encoding="utf-8")
    write_origin(tmp_path)
    assert read_origin(tmp_path) == {"machine": "first"}
    (tmp_path / ORIGIN_FILE).write_text("{", encoding="utf-8")
    with pytest.raises(InputError, match="damaged"):
        read_origin(tmp_path)


def test_columns_that_differ_come_first_and_rows_keep_their_numbers() -> None:
    stream = np.random.default_rng(0)
    data = stream.normal(size=(300, 6))
    samples = stream.normal(size=(300, 6))
    samples[:, 5] += 3
    columns = Columns(tuple("abcdef"), (None,) * 6)
    shown = Shown(columns, data, samples, np.arange(1001, 1301))
    assert shown.order(shown.gaps())[0] == 5
    pairs, explorer, listing = compared(shown, np.array([7]))
    assert isinstance(pairs, Panels)
    assert "The largest difference of the two is in f" in pairs.panels[0].alt
    assert isinstance(explorer, Explorer)
    series = {one["key"]: one for one in explorer.content["series"]}
    assert sorted(series["data"]["numbers"]) == list(range(1001, 1301))
    assert series["outliers"]["numbers"] == [1008]
    first = series["data"]["numbers"].index(1008)
    assert series["data"]["rows"][first] == series["outliers"]["rows"][0]
    np.testing.assert_allclose(series["outliers"]["rows"][0], data[7], rtol=1e-3)
    assert isinstance(listing, Listing)
    assert [row[0] for row in listing.rows] == list("abcdef")


def test_slices_of_a_table_go_through_its_likeliest_row() -> None:
    model, result = judged("table")
    rows = np.random.default_rng(0).normal(size=(50, 4))
    rows[17] = 0.0  # the Gaussian factor's mean
    (panels,) = density_slices(model, result, rows, torch.zeros(1, 4))
    assert len(panels.panels) == 6
    cross = panels.panels[0].figure.axes[0].lines[0]
    assert (cross.get_xdata(), cross.get_ydata()) == ([0.0], [0.0])


def test_a_figure_takes_the_pages_ink_and_keeps_its_names_apart() -> None:
    figure = Figure(figsize=(3, 2))
    axes = figure.subplots()
    axes.plot([1, 2], label=figures.label("price in $ and 価格"))
    axes.set_title(figures.label("a$b$"))
    axes.legend()
    text = themed(figure, 'two "lines" & more', "one")
    assert "currentColor" in text
    assert "#000000" not in text
    assert 'aria-label="two &quot;lines&quot; &amp; more"' in text
    assert "価格" in text
    assert "a$b$" in text
    names = set(text.split('id="')[1:])
    assert names
    assert all(name.startswith("one-") for name in names)
    assert "<style" not in text
