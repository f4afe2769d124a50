"""The commands against a real `sweephand up`: what people do with it in a day."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from sweephand import Client
from sweephand.cli import main
from sweephand.errors import Conflict, Refused
from tests.cli.conftest import Server
from tests.local.waiting import until

EVERYTHING = """\
name: full
description: "Every field: on, off"
schedule:
  cron: "30 2 * * 1-5"
  timezone: Europe/Berlin
  dst: {gap: shift, fold: first}
  jitter: 30s
catchup: {policy: latest, max: 10, window: 1d}
overlap: skip
startDeadline: 1h
concurrency: {runs: 1}
priority: high
guarantee: at-least-once
retry: {attempts: 2, backoff: fixed, delay: 1s, on: [transient]}
timeout: 5m
deadline: "07:00"
pauseAfterFailures: 5
params: {region: eu, "on": "yes"}
tags: [finance]
run: {command: ["echo", "${params.region}"]}
"""


def run(*words: str, given: str | None = None, code: int | None = 0) -> Result:
    result = CliRunner().invoke(main, words, input=given)
    if code is not None:
        assert result.exit_code == code, result.output
    return result


def asked(*words: str) -> Any:
    return json.loads(run(*words, "--json").stdout)


def job(name: str, command: str = "true", **more: Any) -> str:
    return json.dumps({"name": name, "run": {"command": ["sh", "-c", command]}, **more})


def apply(name: str, command: str = "true", **more: Any) -> None:
    run("apply", "-f", "-", "--yes", given=job(name, command, **more))


def is_refused(client: Client) -> bool:
    try:
        next(client.jobs(), None)
    except Refused:
        return True
    return False


def test_apply_shows_a_plan_and_a_second_time_finds_nothing_to_do(server: Server) -> None:
    Path("jobs").mkdir()
    Path("jobs/full.yaml").write_text(EVERYTHING)
    Path("jobs/two.yml").write_text("name: two-a\ncommand: 'true'\n---\nname: two-b\ncommand: 'true'\n")
    dry = run("apply", "-f", "jobs", "--dry-run", code=2)
    assert "+ full: to create, jobs/full.yaml" in dry.stdout
    assert "+ two-b: to create, jobs/two.yml#2" in dry.stdout
    assert "Fires at 20" in dry.stdout
    assert "Fires at no time of its own" in dry.stdout
    assert "Plan: 3 to create." in dry.stdout
    assert run("get", "full", code=1).stderr == "Error: There is no job default/full.\n"
    assert "Applied 3 of 3." in run("apply", "-f", "jobs").stdout
    again = run("apply", "-f", "jobs", "--dry-run", code=0)
    assert "Plan: 3 unchanged." in again.stdout
    assert [one["action"] for one in asked("apply", "-f", "jobs")] == ["none"] * 3


def test_apply_and_plan_say_in_words_what_changes(server: Server) -> None:
    text = job("changing", timeout=60, tags=["a"], schedule="0 6 * * *")
    made = run("apply", "-f", "-", "--dry-run", given=text, code=2).stdout
    assert "    created: every day at 06:00; task main\n" in made
    apply("changing", timeout=60, tags=["a"], schedule="0 6 * * *")
    text = job("changing", timeout=90, priority="low", schedule="0 7 * * *")
    words = ["schedule: every day at 06:00 → every day at 07:00", "timeout: 1m → 1m30s"]
    words += ["tags: a → none", "priority: normal → low"]
    changed = run("apply", "-f", "-", "--dry-run", given=text, code=2).stdout
    assert "~ changing: to change (version 1)" in changed
    assert [line for line in changed.splitlines() if line.removeprefix("    ") in words] == [f"    {w}" for w in words]
    Path("changing.json").write_text(text)
    assert run("plan", "-f", "changing.json").stdout.splitlines()[1:] == words
    (step,) = json.loads(run("apply", "-f", "changing.json", "--dry-run", "--json", code=2).stdout)
    assert (step["summary"], len(step["changes"])) == (words, 4)
    assert asked("get", "changing")["version"] == 1
    run("apply", "-f", "changing.json")
    assert run("plan", "-f", "changing.json").stdout.splitlines()[1:] == ["no change"]


def test_a_bad_file_changes_nothing_and_is_named_with_its_field(server: Server) -> None:
    Path("jobs").mkdir()
    Path("jobs/a-good.yaml").write_text("name: never-made\ncommand: 'true'\n")
    Path("jobs/b-bad.yaml").write_text("name: bad\ncommand: 'true'\nschedule: {cron: '61 * * * *'}\ntimeuot: 1\n")
    Path("jobs/c-twice.yaml").write_text("name: never-made\ncommand: 'false'\n")
    result = run("apply", "-f", "jobs", code=1)
    assert result.stderr.startswith("Error: Nothing was changed.\n")
    assert "  jobs/b-bad.yaml:3: schedule.cron: " in result.stderr
    assert "  jobs/b-bad.yaml:4: timeuot: " in result.stderr
    assert "  jobs/c-twice.yaml:1: name: The job 'never-made' is in jobs/a-good.yaml too.\n" in result.stderr
    run("get", "never-made", code=1)


def test_an_edit_that_somebody_else_made_meanwhile_is_not_overwritten(server: Server) -> None:
    apply("contested")
    with Client() as client:
        current = client.get("contested")["version"]
        client.put(json.loads(job("contested", "first")), version=current)
        with pytest.raises(Conflict):
            client.put(json.loads(job("contested", "second")), version=current)
        with pytest.raises(Conflict):
            client.put(json.loads(job("contested", "second")))


def test_every_job_is_listed_over_many_pages(server: Server) -> None:
    run("namespace", "put", "many")
    with Client(namespace="many") as client:
        for n in range(105):
            client.create({"name": f"many-{n:03}", "command": "true", "tags": ["many"]})
        assert [one["jobId"] for one in client.jobs(prefix="many-")] == [f"many-{n:03}" for n in range(105)]
    assert len(asked("-n", "many", "list", "--tag", "many")) == 105
    table = run("-n", "many", "list", "--prefix", "many-00").stdout.splitlines()
    assert table[0].split() == ["JOB", "STATUS", "SCHEDULE", "NEXT", "FIRE", "LAST", "RUN", "TAGS"]
    assert len(table) == 11


def test_an_export_applies_as_unchanged_and_overwrites_nothing_by_itself(server: Server) -> None:
    run("apply", "-f", "-", given=EVERYTHING.replace("name: full", "name: exported"))
    run("export", "out")
    assert Path("out/exported.yaml").read_text().startswith("name: exported\n")
    assert "unchanged" in run("apply", "-f", "out", "--dry-run", code=0).stdout
    run("export", "out")
    Path("out/exported.yaml").write_text("mine")
    assert "--force overwrites it" in run("export", "out", code=1).stderr
    run("export", "out", "--force")
    assert Path("out/exported.yaml").read_text() != "mine"


def test_get_shows_the_job_and_its_definition(server: Server) -> None:
    apply("shown", schedule="0 6 * * *")
    text = run("get", "shown").stdout
    assert text.startswith("job         shown\nstatus      active\nversion     1\nnext fire   20")
    assert "name: shown\n" in text
    assert "jobId" not in text


def test_a_triggered_run_is_awaited_and_its_success_told(server: Server) -> None:
    apply("works", "test $SWEEPHAND_JOB = works")
    result = run("trigger", "works", "--wait", "--param", "n=1", "--param", "text=a b")
    assert result.stdout.endswith(" succeeded\n")
    (one,) = asked("runs", "--job", "works", "--since", "1h")
    assert one["state"] == "succeeded"
    assert one["trigger"] == "manual"
    shown = asked("run", "show", "works", one["runId"])
    assert shown["params"] == {"n": 1, "text": "a b"}
    assert "state     succeeded\n" in run("run", "show", "works", one["runId"]).stdout


def test_a_run_that_fails_ends_the_wait_with_1_and_its_error(server: Server) -> None:
    apply("breaks", "echo broken >&2; exit 3")
    result = run("trigger", "breaks", "--wait", code=1)
    assert result.stdout.endswith(" failed\n")
    assert result.stderr.splitlines()[-1].startswith("Error: the run failed: ")
    assert "3" in result.stderr.splitlines()[-1]


def test_a_run_is_cancelled_and_run_again(server: Server) -> None:
    apply("long", "exec sleep 60")
    run_id = asked("trigger", "long")["runId"]
    until(lambda: asked("run", "show", "long", run_id)["state"] == "running", within_s=30, what="the run starts")
    run("run", "cancel", "long", run_id)
    until(lambda: asked("run", "show", "long", run_id)["state"] == "cancelled", within_s=30, what="the run ends")
    again = asked("run", "rerun", "long", run_id)
    assert again["rerunOf"] == run_id
    run("run", "cancel", "long", again["runId"])


def test_many_runs_are_cancelled_at_once(server: Server) -> None:
    apply("held", "exec sleep 60", tags=["held"])
    asked("trigger", "held")
    until(lambda: asked("runs", "--tag", "held"), within_s=30, what="the view knows the run")
    assert asked("run", "cancel", "--tag", "held", "--dry-run")["matched"] == 1
    assert "1 changed." in run("run", "cancel", "--tag", "held", "--yes").stdout


def test_jobs_are_paused_and_resumed_by_name_by_tag_and_all(server: Server) -> None:
    for name in ("p1", "p2"):
        apply(name, schedule="0 0 1 1 *", tags=["paused-here"])
    assert run("pause", "p1").stdout == "p1 is paused.\n"
    assert asked("get", "p1")["status"] == "paused"
    assert run("resume", "p1").stdout == "p1 is active.\n"
    assert len(asked("pause", "--tag", "paused-here")) == 2
    assert [one["jobId"] for one in asked("list", "--status", "paused")] == ["p1", "p2"]
    run("resume", "--tag", "paused-here")
    assert asked("pause", "--all")["changed"] >= 2
    assert asked("get", "p2")["status"] == "paused"
    assert run("resume", "--all").stdout.startswith("Resumed ")
    assert asked("get", "p2")["status"] == "active"


def test_fires_ledger_why_and_plan_explain_a_schedule(server: Server) -> None:
    apply("timed", schedule={"cron": "0 6 * * *", "timezone": "Europe/Berlin"})
    fires = asked("fires", "timed", "--count", "3")
    assert len(fires) == 3
    assert "06:00" in fires[0]["local"]
    assert run("fires", "timed", "--count", "2").stdout.count("\n") == 3
    assert asked("ledger", "timed", "--from", "1h") == []
    assert asked("why", "timed")["blockers"] is not None
    assert run("why", "timed").stdout
    Path("timed.yaml").write_text("name: timed\ncommand: 'true'\nschedule: {every: 1h}\n")
    planned = run("plan", "-f", "timed.yaml").stdout
    assert "; 24 a day." in planned
    assert "schedule" in planned


def test_versions_are_listed_and_rolled_back_to(server: Server) -> None:
    apply("versioned", timeout=60)
    apply("versioned", timeout=90)
    assert [one["version"] for one in asked("versions", "versioned")] == [2, 1]
    assert "    timeout: 1m → 1m30s" in run("versions", "versioned").stdout
    assert run("rollback", "versioned", "1").stdout == "versioned is at version 3: as version 1 was.\n"
    assert asked("get", "versioned")["timeout"] == 60


def test_a_deleted_job_is_gone(server: Server) -> None:
    apply("doomed")
    assert asked("delete", "doomed", "--yes") == [{"jobId": "doomed", "status": "deleted"}]
    assert run("get", "doomed", code=1).stderr.startswith("Error: There is no job")


def test_shared_objects_are_put_shown_listed_and_deleted(server: Server) -> None:
    run("pool", "put", "warehouse", "-f", "-", given="slots: 2\n")
    assert asked("pool", "get", "warehouse")["slots"] == 2
    shown = run("pool", "get", "warehouse").stdout
    assert shown == "slots: 2\n"
    run("pool", "put", "warehouse", "-f", "-", given=shown)
    run("template", "put", "nightly", "-f", "-", given="timeout: 60\n")
    assert [one["id"] for one in asked("template", "list")] == ["nightly"]
    run("template", "put", "nightly", "-f", "-", given=run("template", "get", "nightly").stdout)
    run("calendar", "put", "workdays", "-f", "-", given="weekdays: [mon, tue, wed, thu, fri]\n")
    run("calendar", "put", "workdays", "-f", "-", given=run("calendar", "get", "workdays").stdout)
    assert run("calendar", "list").stdout.startswith("ID ")
    for kind, name in (("pool", "warehouse"), ("template", "nightly"), ("calendar", "workdays")):
        run(kind, "delete", name)
        assert asked(kind, "list") == []


def test_a_token_is_shown_once_and_opens_until_it_is_revoked(server: Server) -> None:
    made = run("token", "create", "ci", "--role", "viewer", "--expires", "90d")
    text = made.stdout.strip()
    assert text.startswith("swh_")
    (listed,) = (one for one in asked("token", "list") if one["name"] == "ci")
    assert listed["expiresAt"]
    assert text not in run("token", "list", "--json").stdout
    with Client(token=text) as client:
        next(client.jobs(), None)
        with pytest.raises(Refused):
            client.create({"name": "not-mine", "command": "true"})
        run("token", "revoke", listed["id"])
        # The server may keep what it found out about a token for a moment.
        until(lambda: is_refused(client), within_s=30, what="the token opens nothing")


def test_login_stores_a_token_that_works(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SWEEPHAND_TOKEN")
    assert "wants a token" in run("list", code=1).stderr
    run("login", given="swh_0000000000000000_wrong\n", code=1)
    run("login", given=server.token + "\n")
    run("list")


def test_namespaces_and_members(server: Server) -> None:
    run("namespace", "put", "team-a")
    assert "team-a" in [one["namespace"] for one in asked("namespace", "list")]
    run("-n", "team-a", "member", "put", "ada@example.com", "--role", "operator")
    assert asked("-n", "team-a", "member", "list") == [{"member": "ada@example.com", "role": "operator"}]
    run("-n", "team-a", "member", "remove", "ada@example.com")
    assert asked("-n", "team-a", "list") == []
    run("-n", "team-a", "apply", "-f", "-", given=job("theirs", schedule="0 0 1 1 *"))
    assert asked("namespace", "pause", "team-a")["changed"] == 1
    assert asked("namespace", "resume", "team-a")["changed"] == 1
    assert run("-n", "elsewhere", "list", code=1).stderr.startswith("Error: ")


def test_a_namespace_keeps_its_limits_unless_a_file_says_otherwise_and_can_be_deleted(server: Server) -> None:
    run("namespace", "put", "limited", "-f", "-", given="limits: {jobs: 5}\n")
    assert "is there already and stays as it is" in run("namespace", "put", "limited", code=1).stderr
    (there,) = (one for one in asked("namespace", "list") if one["namespace"] == "limited")
    assert there["limits"] == {"jobs": 5}
    run("namespace", "delete", "limited")
    assert "limited" not in [one["namespace"] for one in asked("namespace", "list")]


def test_the_namespace_of_a_token_is_its_own(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    run("namespace", "put", "team-b")
    text = run("-n", "team-b", "token", "create", "b", "--role", "admin").stdout.strip()
    apply("not-theirs", schedule="0 0 1 1 *")
    monkeypatch.setenv("SWEEPHAND_TOKEN", text)
    apply("theirs", schedule="0 0 1 1 *")
    run("member", "put", "ada@example.com", "--role", "viewer")
    assert asked("member", "list") == [{"member": "ada@example.com", "role": "viewer"}]
    assert asked("pause", "--all")["changed"] == 1
    assert asked("resume", "--all")["changed"] == 1
    monkeypatch.setenv("SWEEPHAND_TOKEN", server.token)
    assert asked("get", "not-theirs")["status"] == "active"
    assert {"member": "ada@example.com", "role": "viewer"} not in asked("member", "list")


def test_what_was_done_is_on_record_and_counted(server: Server) -> None:
    apply("recorded")
    assert any("recorded" in one["subject"] for one in asked("audit", "--since", "1h"))
    assert asked("audit", "--limit", "1") != []
    assert asked("stats")["jobs"] >= 1
    assert "jobs" in run("stats").stdout
    assert run("health").stdout == "status  ok\n"
    assert asked("health") == {"status": "ok"}


def test_what_failed_for_good_is_a_dead_letter_that_can_be_sent_again(server: Server) -> None:
    apply("dead", "exit 1")
    run("trigger", "dead", "--wait", code=1)
    letters: list[dict[str, Any]] = []

    def is_listed() -> bool:
        letters[:] = [one for one in asked("deadletters") if one["jobId"] == "dead"]
        return bool(letters)

    until(is_listed, within_s=30, what="the view knows the failure")
    (answer,) = asked("deadletters", "redrive", letters[0]["id"])
    assert answer["rerunOf"] == letters[0]["runId"]


def test_an_event_with_the_same_id_fires_once(server: Server) -> None:
    with Client() as client:
        client.create({"name": "on-file", "command": "true", "schedule": {"events": [{"source": "s3", "type": "put"}]}})
        first = client.events("s3", "put", {"key": "a"}, id_="e1")
        again = client.events("s3", "put", {"key": "a"}, id_="e1")
    assert [one["jobId"] for one in first["runs"]] == ["on-file"]
    assert [one["runId"] for one in again["runs"]] in ([], [first["runs"][0]["runId"]])


@pytest.mark.parametrize(
    ("script", "state"), [("print(json.dumps({'got': got}))", "succeeded"), ("sys.exit(4)", "failed")]
)
def test_an_external_worker_runs_its_command_for_a_run(server: Server, script: str, state: str) -> None:
    name = f"external-{state}"
    definition = {"name": name, "run": {"external": {"queue": name}}, "params": {"n": 7}}
    run("apply", "-f", "-", given=json.dumps(definition))
    run_id = asked("trigger", name)["runId"]
    program = f"import json, os, sys; got = json.load(sys.stdin); assert 'SWEEPHAND_TOKEN' not in os.environ; {script}"
    command = ["worker", "--once", "--id", "w1", "--queue", name, "--", sys.executable, "-c", program]
    worked = subprocess.run(
        [sys.executable, "-m", "sweephand", *command], check=False, timeout=60, capture_output=True, text=True
    )
    assert worked.returncode == 0, worked.stderr
    assert "w1 pulls from" in worked.stderr
    ended = asked("run", "show", name, run_id)
    assert ended["state"] == state
    if state == "succeeded":
        got = ended["output"]["got"]
        assert (got["runId"], got["params"]) == (run_id, {"n": 7})
        assert "lease" not in got
    else:
        assert ended["error"]["message"] == "The command exited with 4."
    assert "w1" in [one["workerId"] for one in asked("workers")]


def test_a_worker_ends_when_it_is_told_to(server: Server) -> None:
    command = [sys.executable, "-m", "sweephand", "worker", "--queue", "idle", "--", "true"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert "pulls from idle" in process.stderr.readline()
        process.terminate()
        process.communicate(timeout=60)
    assert process.returncode == 0
