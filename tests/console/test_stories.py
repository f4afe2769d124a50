"""What people do with the console, in a real browser on a real server."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.console.browser import expects
from tests.console.conftest import Visit
from tests.console.server import Server


def test_a_wrong_token_is_refused_in_words(visit: Visit, server: Server) -> None:
    page = visit()
    page.get_by_role("button", name="Sign out").click()
    expects(page, "401")
    page.get_by_label("Token").fill("swh_wrong_wrong")
    page.get_by_role("button", name="Sign in", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("token")
    page.get_by_label("Token").fill(server.token)
    page.get_by_role("button", name="Sign in", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_be_visible()


def test_a_session_survives_a_reload_and_no_token_is_left_behind(visit: Visit, server: Server) -> None:
    page = visit("/jobs")
    expect(page.get_by_role("heading", name="Jobs", level=1)).to_be_visible()
    page.reload()
    expect(page.get_by_role("heading", name="Jobs", level=1)).to_be_visible()
    kept = page.evaluate("JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie, location.href])")
    assert server.token not in kept


def test_a_run_that_fires_is_seen_live(visit: Visit, server: Server) -> None:
    job = server.put(name="live-beat", command="true")
    page = visit(f"/jobs/{job}")
    expect(page.get_by_text("It has not run yet.")).to_be_visible()
    server.call("POST", f"/jobs/{job}/trigger", {})
    expect(page.get_by_text("Succeeded").first).to_be_visible()


def test_a_viewer_is_offered_nothing_that_changes(visit: Visit, server: Server) -> None:
    job = server.put(name="looked-at", schedule="0 0 1 1 *", command="true")
    page = visit("/jobs", token=server.token_of("viewer"))
    expect(page.get_by_role("link", name=job, exact=True)).to_be_visible()
    expect(page.get_by_role("link", name="New job")).to_have_count(0)
    page.get_by_role("link", name=job, exact=True).click()
    expect(page.get_by_role("heading", name=job, level=1)).to_be_visible()
    for name in ("Trigger", "Pause", "Edit"):
        expect(page.get_by_role("button", name=name)).to_have_count(0)
        expect(page.get_by_role("link", name=name)).to_have_count(0)
    page.goto("/access/tokens")
    expect(page.get_by_text("shown to admins")).to_be_visible()


def test_a_backfill_says_what_it_comes_to_and_shows_how_far_it_is(visit: Visit, server: Server) -> None:
    job = server.put(name="made-up-for", schedule="0 * * * *", command="true")
    page = visit(f"/jobs/{job}/backfills")
    page.get_by_role("button", name="Backfill").click()
    page.get_by_label("Which fires").select_option("all")
    page.get_by_label("From").fill("2026-01-01T00:00")
    page.get_by_label("To", exact=True).fill("2026-01-01T06:00")
    make = page.get_by_role("button", name=re.compile(r"Make \d+ runs?"))
    expect(make).to_be_enabled()
    make.click()
    expect(page.get_by_role("heading", name=f"Backfill of {job}")).to_be_visible()
    expect(page.get_by_text(re.compile(r"(\d+) of \1 ended"))).to_be_visible()


def test_tokens_are_issued_once_and_revoked(visit: Visit) -> None:
    page = visit("/access/tokens")
    page.get_by_role("button", name="Issue a token").click()
    page.get_by_label("Name", exact=True).fill("ci-of-mine")
    page.get_by_role("button", name="Issue it").click()
    shown = page.get_by_role("dialog").locator("code")
    expect(shown).to_contain_text("swh_")
    page.get_by_role("button", name="Done").click()
    expect(page.get_by_role("cell", name="ci-of-mine", exact=True)).to_be_visible()
    page.get_by_role("button", name="Revoke ci-of-mine").click()
    page.get_by_role("button", name="Revoke it").click()
    expect(page.get_by_role("cell", name="ci-of-mine", exact=True)).to_have_count(0)


def test_keys_lead_to_pages_and_say_which_they_are(visit: Visit) -> None:
    page = visit("/")
    page.keyboard.press("g")
    page.keyboard.press("j")
    expect(page.get_by_role("heading", name="Jobs", level=1)).to_be_visible()
    page.keyboard.press("/")
    expect(page.locator("[data-search]")).to_be_focused()
    page.keyboard.press("Escape")
    page.locator("main").click(position={"x": 5, "y": 5})
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
