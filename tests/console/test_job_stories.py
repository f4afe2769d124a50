"""Jobs, as people write, run, mend and delete them: in a real browser, on a real server."""

from __future__ import annotations

import re
from pathlib import Path

from playwright.sync_api import Locator, Page, expect

from tests.console.browser import expects
from tests.console.conftest import Visit
from tests.console.server import Server

WAITS = "sh -c 'echo begun; while [ ! -e {file} ]; do sleep 0.05; done; echo over'"


def yaml_of(page: Page) -> Locator:
    return page.get_by_role("textbox", name="The job as YAML")


def replace_line(page: Page, of: str, text: str) -> None:
    """Typed key by key in place of the line that says something."""
    page.locator(".cm-line", has_text=of).click()
    page.keyboard.press("Home")
    page.keyboard.press("Shift+End")
    page.keyboard.type(text)


def save(page: Page, version: int) -> None:
    page.get_by_role("button", name="Look over and save").click()
    page.get_by_role("button", name=f"Save as version {version}").click()
    expect(page.get_by_text(f"Version {version} of").first).to_be_visible()


def test_a_job_made_with_the_form_is_seen_to_fire_and_its_log_is_followed(visit: Visit, tmp_path: Path) -> None:
    page = visit("/jobs")
    page.get_by_role("link", name="New job").first.click()
    page.evaluate("window.isSamePage = true")
    page.get_by_label("Name", exact=True).fill("every-second")
    page.get_by_label("Tags").fill("first, form")
    page.get_by_label("Cron expression").fill("* * * * * *")
    page.get_by_label("Command", exact=True).fill(WAITS.format(file=tmp_path / "go"))
    page.get_by_label("If the run before is still active").select_option(label="skip the new one")
    expect(page.get_by_role("complementary", name="Plan").get_by_role("status")).to_have_text("It is right")
    expect(page.locator(".next-fires tbody tr").first).to_contain_text(re.compile(r"\d\d:\d\d:\d\d"))
    page.get_by_role("button", name="Look over and create").click()
    page.get_by_role("button", name="Create the job").click()

    expect(page.get_by_role("heading", name="every-second", level=1)).to_be_visible()
    page.get_by_role("link", name="Runs", exact=True).last.click()
    running = page.locator(".run-row", has=page.get_by_text("Running"))
    running.get_by_role("link").click()
    log = page.get_by_role("region", name="Log")
    expect(log.get_by_text("begun")).to_be_visible()
    expect(page.get_by_text("Following: new lines appear here.")).to_be_visible()
    (tmp_path / "go").touch()
    expect(log.get_by_text("over")).to_be_visible()
    expect(page.locator(".page-head").get_by_text("Succeeded")).to_be_visible()

    page.get_by_role("navigation", name="Breadcrumb").get_by_role("link", name="every-second").click()
    page.get_by_role("button", name="Pause").click()
    page.get_by_role("dialog").get_by_role("button", name="Pause").click()
    expect(page.locator(".page-head").get_by_text("Paused")).to_be_visible()
    assert page.evaluate("window.isSamePage")


def test_a_dag_is_broken_and_mended_with_what_is_wrong_said_where_it_is(visit: Visit, server: Server) -> None:
    steps = {"extract": [], "load": ["extract"], "report": ["load"]}
    tasks = [{"id": id, "needs": needs, "run": {"command": ["true"]}} for id, needs in steps.items()]
    job = server.put(name="broken-graph", tasks=tasks)
    page = visit(f"/jobs/{job}/edit?view=yaml")
    expects(page, "/api/v1/plan")
    expect(yaml_of(page)).to_contain_text("id: load")
    wrong = page.get_by_role("list", name="To correct")

    replace_line(page, "needs: [extract]", "neds: [extract]")
    expect(wrong.get_by_role("button")).to_have_count(1)
    expect(wrong).to_contain_text("tasks[1].neds")
    expect(page.locator(".cm-lintRange-error")).to_have_text("neds")

    replace_line(page, "neds: [extract]", "needs: [extract, report]")
    expect(wrong).to_contain_text("tasks[1].needs")
    expect(wrong).to_contain_text("load → report → load")
    expect(page.locator(".cm-lintRange-error")).to_have_text("needs")
    page.get_by_role("button", name="Form", exact=True).click()
    page.get_by_role("button", name="1 to correct", exact=True).click()
    needs = page.get_by_role("group", name="Needs")
    expect(needs).to_contain_text("These tasks need each other")
    needs.get_by_label("report").uncheck()
    expect(wrong).to_have_count(0)

    page.get_by_role("button", name="YAML").click()
    replace_line(page, "id: report", "- id: tell")
    page.get_by_role("button", name="Look over and save").click()
    look = page.get_by_role("dialog")
    expect(look.locator(".cm-deletedLine")).to_contain_text("id: report")
    expect(look.locator(".cm-changedLine")).to_contain_text("id: tell")
    look.get_by_role("button", name="Save as version 2").click()
    expect(page.get_by_text("Version 2 of broken-graph is in force.")).to_be_visible()
    assert [task["id"] for task in server.call("GET", f"/jobs/{job}")["tasks"]] == ["extract", "load", "tell"]


def test_a_field_of_the_form_says_what_is_wrong_with_it(visit: Visit, server: Server) -> None:
    job = server.put(name="wrong-schedule", schedule={"cron": "0 6 * * *"}, command="true")
    page = visit(f"/jobs/{job}/edit")
    expects(page, "/api/v1/plan")
    cron = page.get_by_label("Cron expression")
    cron.fill("0 6 * * 9")
    expect(cron).to_have_attribute("aria-invalid", "true")
    expect(cron).to_have_accessible_description(re.compile("9"))
    page.get_by_role("button", name="Look over and save").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(cron).to_be_focused()
    assert server.call("GET", f"/jobs/{job}")["version"] == 1


def test_a_job_goes_back_to_its_first_version(visit: Visit, server: Server) -> None:
    job = server.put(name="rolled-back", description="as it was", command="true")
    server.call("PUT", f"/jobs/{job}", {"name": job, "description": "as it is", "command": "true"}, If_Match="1")
    page = visit(f"/jobs/{job}/versions")
    page.get_by_label("Compare version 1").check()
    page.get_by_label("Compare version 2").check()
    expect(page.locator(".cm-deletedLine")).to_contain_text("as it was")
    expect(page.locator(".cm-changedLine")).to_contain_text("as it is")
    page.get_by_role("button", name="Go back to it").click()
    page.get_by_role("button", name="Go back to version 1").click()
    expect(page.get_by_text(f"{job} is back to version 1: it is version 3 now.")).to_be_visible()
    expect(page.get_by_text("Version 3", exact=True)).to_be_visible()
    assert server.call("GET", f"/jobs/{job}")["description"] == "as it was"


def test_of_two_who_edit_at_once_neither_loses_anything(visit: Visit, server: Server) -> None:
    job = server.put(name="of-two", description="nobody's", tags=["old"], command="true")
    mine, theirs = visit(f"/jobs/{job}/edit"), visit(f"/jobs/{job}/edit")
    mine.get_by_label("Description").fill("mine")
    theirs.get_by_label("Tags").fill("theirs")
    save(theirs, 2)
    expects(mine, "412")
    mine.get_by_role("button", name="Look over and save").click()
    mine.get_by_role("button", name="Save as version 2").click()
    told = mine.get_by_role("dialog", name="Somebody else saved version 2 meanwhile")
    expect(told.get_by_text("Nothing of yours is lost, and nothing was saved yet.")).to_be_visible()
    expect(told.locator(".cm-changedLine")).to_contain_text("theirs")
    told.get_by_role("button", name="Put my changes on top of version 2").click()
    expect(mine.get_by_label("Description")).to_have_value("mine")
    expect(mine.get_by_label("Tags")).to_have_value("theirs")
    save(mine, 3)
    saved = server.call("GET", f"/jobs/{job}")
    assert (saved["description"], saved["tags"]) == ("mine", ["theirs"])


def test_what_was_not_saved_is_not_lost_by_leaving(visit: Visit, server: Server) -> None:
    job = server.put(name="left-alone", description="before", command="true")
    page = visit(f"/jobs/{job}/edit")
    page.get_by_label("Description").fill("not saved yet")
    page.get_by_role("link", name="Workers").click()
    asked = page.get_by_role("dialog", name="Leave without saving?")
    asked.get_by_role("button", name="Stay").click()
    expect(page.get_by_label("Description")).to_have_value("not saved yet")
    page.get_by_role("link", name="Workers").click()
    asked.get_by_role("button", name="Leave without saving").click()
    expect(page.get_by_role("heading", name="Workers", level=1)).to_be_visible()
    assert server.call("GET", f"/jobs/{job}")["description"] == "before"


def test_a_job_is_deleted_once_its_name_is_typed(visit: Visit, server: Server) -> None:
    job = server.put(name="to-be-deleted", command="true")
    page = visit(f"/jobs/{job}")
    page.get_by_role("button", name="More to do").click()
    page.get_by_role("menuitem", name="Delete").click()
    asked = page.get_by_role("dialog", name=f"Delete {job}")
    does = asked.get_by_role("button", name="Delete", exact=True)
    expect(does).to_be_disabled()
    asked.get_by_label(f"Type {job} to go on").fill("to-be-deletet")
    expect(does).to_be_disabled()
    asked.get_by_label(f"Type {job} to go on").fill(job)
    does.click()
    expect(page.get_by_text(f"{job} is deleted.")).to_be_visible()
    expect(page.get_by_role("heading", name="Jobs", level=1)).to_be_visible()
    expect(page.get_by_role("link", name=job, exact=True)).to_have_count(0)


def test_a_viewer_may_look_at_a_job_and_change_nothing(visit: Visit, server: Server) -> None:
    job = server.put(name="looked-at-closely", command="true")
    page = visit(f"/jobs/{job}/edit", token=server.token_of("viewer"))
    expect(page.get_by_role("heading", name="You may not change jobs here")).to_be_visible()
    page.get_by_role("link", name=f"To {job}").click()
    page.get_by_role("link", name="Versions").click()
    expect(page.get_by_text("Version 1", exact=True)).to_be_visible()
    expect(page.get_by_role("button", name="Go back to it")).to_have_count(0)
    page.keyboard.press("n")
    expect(page.get_by_role("heading", name=job, level=1)).to_be_visible()
