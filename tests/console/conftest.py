"""A server, a browser, and pages for those who look at it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from tests.console.browser import DESK, Screen, chromium, launched, looking, sign_in
from tests.console.server import Server, served

HERE = Path(__file__).parent
MISSING = "tests/console is left out: there is no Chromium here (Debian: `apt-get install chromium`)."


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Where there is no browser these tests cannot be; under CI there is one, or the run is to fail."""
    is_ours = collection_path.name.startswith("test_") and collection_path.is_relative_to(HERE)
    return True if is_ours and chromium() is None and not os.environ.get("CI") else None


def pytest_report_header() -> str:
    return MISSING if chromium() is None else ""


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with served(tmp_path_factory.mktemp("console")) as found:
        yield found


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with launched() as found:
        yield found


Visit = Callable[..., Page]


@pytest.fixture
def visit(server: Server, browser: Browser) -> Iterator[Visit]:
    """Sign in and go to a page: as the admin or another, on a desk or on a phone."""
    with ExitStack() as stack:

        def visited(path: str = "/", *, token: str | None = None, screen: Screen = DESK) -> Page:
            page = stack.enter_context(looking(browser, server.url, screen))
            sign_in(page, token or server.token)
            if path != "/":
                page.evaluate("path => history.pushState(null, '', path)", path)
            return page

        yield visited
