"""Reports opened in a headless Chromium: no errors, no requests, every figure drawn, on any screen."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from burnin.config import load_config
from burnin.core import Outcome
from burnin.data import Frame
from burnin.estimator import EnergyDensity
from burnin.reporting import report_run
from burnin.runs import train_in
from tests.report.browser import Browser

DIGITS = """
title = "tiny digits"
[run]
updates = 5
batch_size = 32
tensorboard = false
[data]
name = "digits8"
noise = 0.03
[model]
temperature = 5e-5
width = [16]
standardise = false
[scheme]
name = "noise"
[noise]
kind = "uniform"
[sampler]
num_steps = 5
step_size = 1.0
[study]
samples = 60
distance_sets = 5
long_chains = 20
long_steps = 20
data_chains = 20
data_steps = 20
cooling_steps = 20
likelihood_particles = 0
"""
ODD = 'income ($) <b>"net"</b></style></script><script>window.stranger = 1</script>'
"""The name of a column, as a stranger may write it."""
WORDS = ("red", "<img src=x onerror='window.stranger = 2'>")
FOLDER = 'people <svg onload="window.stranger = 3">&lt;'


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a fitted table with words, a name that is hard to write, and an outlier in row 42."""
    stream = np.random.default_rng(0)
    colour = stream.choice(np.array(WORDS, dtype=object), size=120)
    columns = {"height": 170 + 8 * stream.normal(size=120), ODD: stream.normal(size=120), "colour": colour}
    columns |= {"rooms": stream.poisson(3, 120).astype(float)}
    columns["height"][41] = 290.0
    folder = tmp_path_factory.mktemp("table") / FOLDER
    EnergyDensity(max_updates=10, random_state=0, particles=16).fit_in(Frame(columns), folder)
    config = (folder / "config.toml").read_text(encoding="utf-8")
    short = {"long_steps": 20, "data_steps": 20, "cooling_steps": 20, "distance_sets": 5}
    short |= {"likelihood_particles": 0}
    for name, value in short.items():
        config = re.sub(rf"^{name} = .*$", f"{name} = {value}", config, flags=re.M)
    (folder / "config.toml").write_text(config, encoding="utf-8")
    report_run(folder, lambda *_: None)
    return folder / "report.html"


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a model of pictures."""
    folder = tmp_path_factory.mktemp("pictures")
    (folder / "recipe.toml").write_text(DIGITS, encoding="utf-8")
    assert train_in(folder / "run", load_config(str(folder / "recipe.toml")), resume=False) is Outcome.OK
    report_run(folder / "run", lambda *_: None)
    return folder / "run" / "report.html"


def test_a_table_has_no_fault_on_a_desk_by_night_and_on_a_phone(browser: Browser, table: Path) -> None:
    desk = browser.open(table)
    assert desk.faults() == []
    assert len(desk.seen["figures"]) >= 19
    assert all(address.startswith("data:image/png") for address in desk.seen["images"])
    order = ["verdict", "samples", "density", "energy", "outliers", "diagnostics", "goodness", "likelihood"]
    assert desk.seen["anchors"] == [*order, "cost"]
    night = browser.open(table, dark=True)
    assert night.faults() == []
    assert (night.seen["background"], night.seen["ink"]) != (desk.seen["background"], desk.seen["ink"])
    assert browser.run("getComputedStyle(document.querySelector('svg.figure')).color") == night.seen["ink"]
    phone = browser.open(table, width=390, height=844)
    assert phone.seen["window"] == 390
    assert phone.faults() == []
    assert browser.print().startswith(b"%PDF")


def test_pictures_have_no_fault(browser: Browser, pictures: Path) -> None:
    assert browser.open(pictures).faults() == []
    assert browser.open(pictures, width=390).faults() == []


def test_the_outlier_is_first_under_its_row_and_in_its_units(browser: Browser, table: Path) -> None:
    browser.open(table)
    heads = browser.run("[...document.querySelectorAll('#outliers th')].map(head => head.textContent)")
    assert heads == ["row", "log-density, nats", "percentile", "height", ODD, "colour", "rooms"]
    first = browser.run("[...document.querySelector('#outliers tbody tr').cells].map(c => c.textContent)")
    assert first[0] == "42"
    assert first[3] == "290"
    assert first[5] in WORDS


@pytest.mark.parametrize(("column", "key"), [(0, float), (1, float), (5, str)])
def test_a_click_sorts_and_another_turns_it_round(
    browser: Browser, table: Path, column: int, key: Callable[[str], Any]
) -> None:
    browser.open(table)
    click = f"document.querySelectorAll('#outliers th button')[{column}].click()"
    cells = f"[...document.querySelectorAll('#outliers tbody tr')].map(r => r.cells[{column}].textContent)"
    before = browser.run(cells)
    orders = []
    for _ in range(2):
        browser.run(click)
        orders.append([key(cell) for cell in browser.run(cells)])
    assert sorted(orders[0]) in orders
    assert sorted(orders[0], reverse=True) in orders
    assert sorted(browser.run(cells)) == sorted(before)


def test_a_reader_can_choose_columns_and_point_at_rows(browser: Browser, table: Path) -> None:
    browser.open(table)
    drawn = "document.querySelector('.explorer svg').innerHTML"
    names = browser.run("[...document.querySelector('.explorer select').options].map(o => o.text)")
    assert names == ["height", ODD, "colour", "rooms"]
    first = browser.run(drawn)
    browser.run(
        "const up = document.querySelectorAll('.explorer select')[1];"
        "up.value = 2; up.dispatchEvent(new Event('change'))"
    )
    assert browser.run(drawn) != first
    assert "red" in browser.run("document.querySelector('.explorer svg').textContent")
    said = browser.run("""(() => {
      const svg = document.querySelector(".explorer svg"), box = svg.getBoundingClientRect();
      const [x, y] = svg.querySelector("path.outliers").getAttribute("d").match(/[\\d.]+/g).map(Number);
      const at = { clientX: box.left + x * box.width / 640, clientY: box.top + y * box.width / 640 };
      svg.dispatchEvent(new PointerEvent("pointermove", at));
      return document.querySelector(".pointed").textContent;
    })()""")
    assert said.startswith("row 42: height 290, colour ")


def test_what_came_from_data_is_text(browser: Browser, table: Path, tmp_path: Path) -> None:
    """Also without the policy that lets no foreign script run: names and words are escaped everywhere."""
    text = table.read_text(encoding="utf-8")
    assert "stranger" in text
    page = tmp_path / "page.html"
    page.write_text(re.sub(r"<meta http-equiv[^>]*>", "", text), encoding="utf-8")
    assert browser.open(page).faults() == []
    assert browser.run("window.stranger === undefined")
    assert browser.run("document.querySelectorAll('b, [onerror], [onload], img[src=x]').length") == 0
    shown = browser.run("document.body.textContent")
    for words in (ODD, WORDS[1]):
        assert words in shown
    assert WORDS[1] in browser.run(
        "const up = document.querySelectorAll('.explorer select')[1]; up.value = 2;"
        "up.dispatchEvent(new Event('change')); document.querySelector('.explorer svg').textContent"
    )
    assert browser.run("window.stranger === undefined")


BREAKS: dict[str, tuple[str, str, str]] = {
    "an error": ("</body>", "<script>nobody.knows()</script></body>", "nobody is not defined"),
    "an error on the console": ("</body>", "<script>console.error('oh no')</script></body>", "oh no"),
    "a missing picture": ("</body>", '<img alt="nothing to be seen" src="data:image/png,x"></body>', "drawn"),
    "an empty figure": ("</body>", '<svg aria-label="nothing to be seen"></svg></body>', "is not drawn"),
    "a silent figure": ('aria-label="Pair plot', 'data-label="Pair plot', "says nothing"),
    "a wide table": ("</body>", '<div style="width: 3000px">wide</div></body>', "scrolls sideways"),
    "a request": ("</body>", '<img alt="something from afar" src="http://localhost:9/x.png"></body>', "asks"),
}


@pytest.mark.parametrize("name", BREAKS)
def test_a_broken_page_is_noticed(browser: Browser, table: Path, tmp_path: Path, name: str) -> None:
    old, new, expected = BREAKS[name]
    text = table.read_text(encoding="utf-8")
    assert old in text
    text = re.sub(r"<meta http-equiv[^>]*>", "", text).replace(old, new, 1)
    (tmp_path / "broken.html").write_text(text, encoding="utf-8")
    assert any(expected in fault for fault in browser.open(tmp_path / "broken.html").faults())


def test_a_script_that_is_not_the_pages_own_is_not_run(browser: Browser, table: Path, tmp_path: Path) -> None:
    text = table.read_text(encoding="utf-8").replace("</body>", "<script>window.foreign = 1</script></body>")
    (tmp_path / "page.html").write_text(text, encoding="utf-8")
    faults = browser.open(tmp_path / "page.html").faults()
    assert any("Content Security Policy" in fault for fault in faults)
    assert browser.run("window.foreign === undefined")
