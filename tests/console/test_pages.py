"""Every page, by day, by night and on a phone: nothing overlaps, everybody can use it, and text stays text."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from tests.console.browser import DESK, NIGHT, PHONE, Screen, cramped, go, looking, settled, sign_in, violations
from tests.console.places import furnish
from tests.console.server import Server


@pytest.fixture(scope="module")
def places(server: Server) -> dict[str, str]:
    return furnish(server)


@pytest.fixture(params=[DESK, NIGHT, PHONE], ids=lambda screen: screen.name)
def page(request: pytest.FixtureRequest, server: Server, browser: Browser) -> Iterator[Page]:
    screen: Screen = request.param
    with looking(browser, server.url, screen) as found:
        sign_in(found, server.token)
        yield found


def test_every_page_is_in_order(page: Page, places: dict[str, str]) -> None:
    wrong: list[str] = []
    for name, path in places.items():
        go(page, path)
        page.locator("main h1, main h2").first.wait_for()
        settled(page)
        wrong += [f"{name}: {one}" for one in (*cramped(page), *violations(page))]
        if page.title() == "owned":
            wrong.append(f"{name}: text became part of the page")
        for dialog in page.locator("dialog[open]").all():
            dialog.get_by_role("button", name="Close").first.click()
    assert wrong == []
