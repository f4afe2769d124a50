"""Runs, as people watch them, mend them and decide in them: in a real browser, on a real server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Locator, Page, expect

from tests.console.browser import DESK, expects, go, looking, sign_in
from tests.console.conftest import Visit
from tests.console.line import line_to
from tests.console.server import Server


def node(page: Page, task: str) -> Locator:
    graph = page.get_by_role("group", name="Graph of the tasks")
    return graph.get_by_role("button").filter(has=page.get_by_text(task, exact=True))


def tasks(*steps: tuple[str, str]) -> list[dict[str, Any]]:
    """A chain of shell commands by their names."""
    names = [name for name, _ in steps]
    needs = dict(zip(names, [[], *([name] for name in names)], strict=False))
    return [{"id": name, "needs": needs[name], "run": {"command": ["sh", "-c", says]}} for name, says in steps]


def triggered(server: Server, job: str) -> str:
    run: str = server.call("POST", f"/jobs/{job}/trigger", {})["runId"]
    return f"/jobs/{job}/runs/{run}"


def tab_to(page: Page, target: Locator, most: int = 60) -> None:
    """With the key alone; it fails where the key does not lead there."""
    expect(target.first).to_be_attached()
    for _ in range(most):
        page.keyboard.press("Tab")
        if target.first.evaluate("element => element === document.activeElement"):
            return
    raise AssertionError(f"Tab does not lead to {target}.")


def test_what_failed_is_seen_in_the_graph_and_run_again_from_there(
    visit: Visit, server: Server, tmp_path: Path
) -> None:
    loads = f"echo loading; test -e {tmp_path / 'source'}"
    job = server.put(name="fails-first", tasks=tasks(("extract", "true"), ("load", loads), ("report", "true")))
    page = visit(f"/jobs/{job}")
    page.get_by_role("button", name="Trigger").click()
    page.get_by_role("dialog").get_by_role("button", name="Trigger").click()
    page.get_by_role("link", name="Runs", exact=True).last.click()
    page.locator(".run-row").get_by_role("link").click()
    expect(node(page, "load")).to_have_attribute("data-state", "failed")
    expect(node(page, "extract")).to_have_attribute("data-state", "succeeded")
    expect(node(page, "report")).to_have_attribute("data-state", "upstream_failed")
    node(page, "load").click()
    expect(page.get_by_role("region", name="Log")).to_contain_text("loading")

    (tmp_path / "source").touch()
    page.get_by_role("button", name="Rerun from failed").click()
    asked = page.get_by_role("dialog")
    expect(asked).to_contain_text("Started anew: 2 tasks: load and report.")
    asked.get_by_role("button", name="Rerun", exact=True).click()
    expect(page.get_by_text("Rerun of")).to_be_visible()
    for task in ("extract", "load", "report"):
        expect(node(page, task)).to_have_attribute("data-state", "succeeded")
    node(page, "extract").click()
    page.get_by_role("link", name="Taken over from an earlier run").click()
    expect(page.get_by_role("complementary", name="extract")).to_be_visible()
    expect(node(page, "load")).to_have_attribute("data-state", "failed")


def test_an_approval_is_given_with_a_note_and_the_run_goes_on(visit: Visit, server: Server) -> None:
    gate = {"id": "gate", "run": {"approval": {"message": "Ship it?"}}}
    ship = {"id": "ship", "needs": ["gate"], "run": {"command": ["true"]}}
    job = server.put(name="asks", tasks=[gate, ship])
    page = visit(triggered(server, job))
    expect(page.get_by_text("Ship it?").first).to_be_visible()
    expect(node(page, "ship")).to_have_attribute("data-state", "waiting")
    node(page, "gate").click()
    page.get_by_role("button", name="Approve").click()
    asked = page.get_by_role("dialog", name="Approve gate?")
    asked.get_by_label("Note").fill("seen and found good")
    asked.get_by_role("button", name="Approve", exact=True).click()
    expect(node(page, "ship")).to_have_attribute("data-state", "succeeded")
    page.get_by_role("tab", name="Output").click()
    expect(page.get_by_role("tabpanel")).to_contain_text("seen and found good")
    go(page, "/audit")
    expect(page.get_by_text("seen and found good").first).to_be_visible()


def test_what_changes_while_the_line_is_cut_is_on_screen_once_it_is_mended(server: Server, browser: Browser) -> None:
    job = server.put(name="cut-off", command="true")
    with line_to(server.url) as line, looking(browser, line.url, DESK) as page:
        sign_in(page, server.token)
        go(page, f"/jobs/{job}")
        page.evaluate("window.isSamePage = true")
        expect(page.get_by_text("It has not run yet.")).to_be_visible()
        expect(page.get_by_role("status").get_by_text("Live", exact=True)).to_be_visible()
        expects(page, "ERR_")
        line.cut()
        expect(page.get_by_text("Connection lost: trying again")).to_be_visible()
        server.call("POST", f"/jobs/{job}/trigger", {})
        line.mend()
        expect(page.get_by_text("Succeeded").first).to_be_visible()
        expect(page.get_by_role("status").get_by_text("Live", exact=True)).to_be_visible()
        assert page.evaluate("window.isSamePage")


def test_a_task_is_reached_and_opened_with_the_keyboard_alone(visit: Visit, server: Server) -> None:
    job = server.put(name="by-keys", tasks=tasks(("first", "echo one"), ("second", "echo two"), ("third", "true")))
    triggered(server, job)
    page = visit("/")
    page.keyboard.press("g")
    page.keyboard.press("j")
    expect(page.get_by_role("heading", name="Jobs", level=1)).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.type("by-keys")
    expect(page.locator(".job-row:not(.heads)")).to_have_count(1)
    tab_to(page, page.get_by_role("link", name=job, exact=True))
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name=job, level=1)).to_be_visible()
    tab_to(page, page.get_by_role("navigation", name="Views of this job").get_by_role("link", name="Runs"))
    page.keyboard.press("Enter")
    tab_to(page, page.locator(".run-row").get_by_role("link"))
    page.keyboard.press("Enter")
    tab_to(page, node(page, "first"))
    page.keyboard.press("ArrowRight")
    expect(node(page, "second")).to_be_focused()
    page.keyboard.press("Enter")
    beside = page.get_by_role("complementary", name="second")
    expect(beside).to_be_focused()
    expect(beside.get_by_role("region", name="Log")).to_contain_text("two")
    page.keyboard.press("Escape")
    expect(beside).to_have_count(0)
    expect(node(page, "second")).to_be_focused()


def test_a_viewer_sees_all_of_a_run_and_is_offered_nothing_that_changes_it(visit: Visit, server: Server) -> None:
    gate = {"id": "gate", "needs": ["build"], "run": {"approval": {"message": "Go on?"}}}
    job = server.put(name="watched", tasks=[*tasks(("build", "echo built")), gate])
    page = visit(triggered(server, job), token=server.token_of("viewer"))
    expect(page.get_by_text("Go on?").first).to_be_visible()
    node(page, "build").click()
    expect(page.get_by_role("region", name="Log")).to_contain_text("built")
    node(page, "gate").click()
    expect(page.get_by_role("complementary", name="gate")).to_be_visible()
    for name in ("Approve", "Reject", "Cancel", "Rerun", "Retry now", "End by hand"):
        expect(page.get_by_role("button", name=name)).to_have_count(0)
