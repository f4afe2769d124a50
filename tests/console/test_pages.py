"""Every page, by day, by night and on a phone: nothing overlaps, everybody can use it, and text stays text."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.console.browser import (
    DESK,
    NIGHT,
    PHONE,
    Screen,
    cramped,
    go,
    looking,
    settled,
    sign_in,
    taken_over,
    violations,
)
from tests.console.conftest import Visit
from tests.console.places import CANARY, IMAGE, furnish
from tests.console.server import Server

SHARED = {"calendars", "pools", "secrets", "datasets"}
BARE = {"new-job", "job-calendar", "backfills", "workers", "members", "nowhere", *SHARED}
"""Pages of which no text is anybody's own."""


@pytest.fixture(scope="session")
def places(server: Server) -> dict[str, str]:
    return furnish(server)


@pytest.fixture(params=[DESK, NIGHT, PHONE], ids=lambda screen: screen.name)
def page(request: pytest.FixtureRequest, server: Server, browser: Browser) -> Iterator[Page]:
    screen: Screen = request.param
    with looking(browser, server.url, screen) as found:
        sign_in(found, server.token)
        yield found


def show(page: Page, path: str) -> None:
    go(page, path)
    page.locator("main#main :is(h1, h2)").first.wait_for()
    settled(page)


def says(page: Page) -> bool:
    """Whether what somebody wrote is on the screen, letter by letter."""
    return page.locator("main, dialog").get_by_text(IMAGE, exact=False).count() > 0


def test_every_page_is_in_order(page: Page, places: dict[str, str]) -> None:
    wrong: list[str] = []
    silent: set[str] = set()
    for name, path in places.items():
        show(page, path)
        wrong += [f"{name}: {one}" for one in (*cramped(page), *violations(page), *taken_over(page))]
        silent |= set() if says(page) else {name}
        for dialog in page.locator("dialog[open]").all():
            dialog.get_by_role("button", name="Close").first.click()
    assert wrong == []
    assert silent <= BARE


@pytest.mark.parametrize("task", ["extract", "load", "publish"])
def test_whatever_a_task_says_stays_text(visit: Visit, places: dict[str, str], task: str) -> None:
    page = visit()
    show(page, f"{places['run'].split('?')[0]}?task={task}")
    parts = page.get_by_role("tablist").get_by_role("tab")
    expect(parts.first).to_be_visible()
    for part in parts.all():
        part.click()
        settled(page)
        assert taken_over(page) == []


def test_what_is_asked_before_something_is_done_stays_text(visit: Visit, places: dict[str, str]) -> None:
    page = visit("/jobs/daily-sales")
    for path, button in (
        ("/jobs/daily-sales", "Trigger"),
        (places["run-approval"], "Cancel"),
        (f"{places['run-approval']}?task=publish", "Approve"),
        (f"{places['run-approval']}?task=publish", "Reject"),
        (places["run"], "Rerun from failed"),
        ("/access/tokens", f"Revoke deployments {CANARY}"),
    ):
        show(page, path)
        page.locator("main").get_by_role("button", name=button, exact=True).click()
        asked = page.get_by_role("dialog")
        expect(asked).to_be_visible()
        assert taken_over(page) == []
        asked.get_by_role("button", name="Close").click()
