"""One browser for all tests of pages."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.report.browser import NAMES, Browser, find_browser


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    program = find_browser()
    if program is None:
        pytest.skip(f"no Chromium on PATH (looked for {', '.join(NAMES)}): pages cannot be opened")
    opened = Browser(program, tmp_path_factory.mktemp("browser"))
    yield opened
    opened.close()
