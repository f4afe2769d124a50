"""Single commands against a server that answers what the test says: what they ask it, and what they tell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from sweephand import Client
from sweephand.cli import main
from sweephand.errors import InvalidInput
from tests.cli.scripted import Answer, Scripted, scripted

EMPTY = Answer(200, {"items": [], "nextCursor": None})


def run(script: Scripted, *words: str, given: str | None = None) -> Result:
    return CliRunner().invoke(main, ["--url", script.url, *words], input=given)


def namespaces(*names: str) -> Answer:
    return Answer(200, {"items": [{"namespace": name} for name in names], "nextCursor": None})


def asked(script: Scripted) -> list[str]:
    return [f"{question.method} {question.path.removeprefix('/api/v1')}" for question in script.questions]


# Which namespace.

OF_THE_NAMESPACE = [
    (["pause", "--all"], "POST", "/pause"),
    (["resume", "--all"], "POST", "/resume"),
    (["member", "list"], "GET", "/members"),
    (["member", "put", "ada", "--role", "viewer"], "PUT", "/members/ada"),
    (["member", "remove", "ada"], "DELETE", "/members/ada"),
]


@pytest.mark.parametrize(("words", "method", "path"), OF_THE_NAMESPACE)
@pytest.mark.parametrize(
    ("seen", "taken"), [(["team"], "team"), (["default"], "default"), (["a", "default", "team"], "default")]
)
def test_without_a_name_the_namespace_is_the_tokens_own(
    words: list[str], method: str, path: str, seen: list[str], taken: str
) -> None:
    with scripted(namespaces(*seen), EMPTY) as script:
        assert run(script, *words).exit_code == 0
    assert asked(script) == ["GET /namespaces", f"{method} /namespaces/{taken}{path}"]


def test_a_namespace_that_is_named_is_not_asked_for() -> None:
    with scripted(EMPTY) as script:
        run(script, "-n", "named", "member", "list")
    assert asked(script) == ["GET /namespaces/named/members"]


def test_whoami_tells_people_in_lines_and_programs_all_of_it() -> None:
    me = {"caller": "ann", "kind": "person", "role": "editor", "namespace": "a", "namespaces": ["a", "b"]}
    with scripted(Answer(200, {**me, "platform": False, "expiresAt": None})) as script:
        told = run(script, "whoami")
        as_json = run(script, "whoami", "--json")
    assert [line.split() for line in told.stdout.splitlines()] == [
        ["caller", "ann"],
        ["kind", "person"],
        ["role", "editor"],
        ["namespace", "a"],
        ["namespaces", "a,", "b"],
    ]
    assert json.loads(as_json.stdout)["platform"] is False
    assert asked(script) == ["GET /session", "GET /session"]


def test_a_list_of_what_fires_next_says_where_jobs_were_left_out() -> None:
    fire = {"jobId": "a", "fireAt": "2026-03-29T01:30:00Z", "local": "2026-03-29T03:30:00+02:00", "note": "moved"}
    page = {"items": [fire], "nextCursor": None}
    with scripted(Answer(200, {**page, "truncated": True}), Answer(200, {**page, "truncated": False})) as script:
        cut = run(script, "upcoming", "--within", "2h", "--limit", "1")
        whole = run(script, "upcoming")
    assert "moved" in cut.stdout
    assert "too many jobs" in cut.stderr
    assert whole.stdout == cut.stdout
    assert not whole.stderr
    assert asked(script) == ["GET /upcoming?within=2h&limit=1", "GET /upcoming?within=1h&limit=50"]


def test_jobs_are_searched_through_pages_that_may_be_empty() -> None:
    first, second = {"items": [], "nextCursor": "more"}, {"items": [{"jobId": "daily"}], "nextCursor": None}
    with scripted(Answer(200, first), Answer(200, second)) as script:
        assert "daily" in run(script, "list", "--search", "ai ly").stdout
    assert asked(script) == ["GET /jobs?search=ai+ly", "GET /jobs?search=ai+ly&cursor=more"]


def test_a_run_shows_its_cost_only_where_somebody_charges_for_it() -> None:
    told = {"runId": "r", "jobId": "a", "state": "succeeded"}
    cost = {"dollars": 0.000016, "writeUnits": 6, "transitions": 0, "basis": "An estimate.", "charged": True}
    charged, free = Answer(200, {**told, "cost": cost}), Answer(200, {**told, "cost": {**cost, "charged": False}})
    with scripted(charged, free) as script:
        assert "about $0.000016" in run(script, "run", "show", "a", "r").stdout
        assert "$" not in run(script, "run", "show", "a", "r").stdout


# Namespaces.


def test_a_namespace_is_created_without_a_file_and_replaced_only_with_one() -> None:
    Path("team.yaml").write_text("limits: {jobs: 5}\n")
    with scripted(Answer(200, {"namespace": "team"})) as script:
        assert run(script, "namespace", "put", "team").stdout == "The namespace team is created.\n"
        assert run(script, "namespace", "put", "team", "-f", "team.yaml").stdout == "The namespace team is stored.\n"
    created, replaced = script.questions
    assert (created.headers["if-none-match"], created.body) == ("*", "{}")
    assert "if-none-match" not in replaced.headers
    assert json.loads(replaced.body) == {"limits": {"jobs": 5}}


def test_a_namespace_that_is_there_stays_as_it_is() -> None:
    with scripted(Answer(412, {"detail": "It is at version 3."}), namespaces("default", "team")) as script:
        result = run(script, "namespace", "put", "team")
    assert result.exit_code == 1
    assert result.stderr == "Error: The namespace team is there already and stays as it is: -f FILE changes it.\n"


def test_another_reason_not_to_create_a_namespace_is_told_as_it_is() -> None:
    with scripted(Answer(409, {"detail": "There was one."}), namespaces("default")) as script:
        assert run(script, "namespace", "put", "team").stderr == "Error: There was one.\n"


def test_a_namespace_is_deleted() -> None:
    with scripted(Answer(204)) as script:
        assert run(script, "namespace", "delete", "team").stdout == "The namespace team is deleted.\n"
    assert asked(script) == ["DELETE /namespaces/team"]


def test_a_namespace_is_resumed_with_what_was_missed() -> None:
    with scripted(Answer(200, {"changed": 2, "nextCursor": None})) as script:
        run(script, "namespace", "resume", "team")
        assert run(script, "namespace", "resume", "team", "--catchup", "all").stdout == "Resumed 2 jobs.\n"
    assert [json.loads(question.body) for question in script.questions] == [{"catchup": "none"}, {"catchup": "all"}]


# Versions.


def test_versions_are_told_by_who_when_and_what() -> None:
    lines = ["schedule: every day at 06:00 → every day at 07:00", "task load: timeout 10m → 20m"]
    items = [
        {"version": 2, "createdAt": "2027-06-15T06:00:00Z", "createdBy": "ann", "summary": lines, "changes": []},
        {"version": 1, "createdAt": "2027-06-14T06:00:00Z", "createdBy": "bob\x1b[2J", "summary": [], "changes": []},
    ]
    with scripted(Answer(200, {"items": items, "nextCursor": None})) as script:
        shown = run(script, "versions", "report").stdout.splitlines()
        as_json = json.loads(run(script, "versions", "report", "--json").stdout)
    assert shown[1:3] == [f"    {line}" for line in lines]
    assert shown[0].startswith("version 2  ")
    assert shown[0].endswith("  ann")
    assert shown[4] == "    no change"
    assert "\x1b" not in shown[3]
    assert as_json == items


# Datasets.


def test_datasets_are_shown_with_who_has_to_do_with_them() -> None:
    sales = {
        "id": "sales.daily",
        "publishers": [{"jobId": "load", "taskId": "export"}, {"jobId": "fix", "taskId": None}],
        "subscribers": [{"jobId": "report", "quantity": "all"}],
        "updatedAt": None,
        "updateId": None,
    }
    with scripted(Answer(200, {"items": [sales], "nextCursor": None}), EMPTY) as script:
        shown = run(script, "datasets").stdout
        assert "no datasets" in run(script, "datasets").stdout
    assert shown.splitlines()[1].split()[:4] == ["sales.daily", "load/export,", "fix", "report"]


def test_publish_says_who_runs() -> None:
    told = {"id": "x", "runs": [{"jobId": "report", "runId": "20270615T060000Z-ab"}]}
    with scripted(Answer(202, told), Answer(202, {"id": "y", "runs": []})) as script:
        first = run(script, "publish", "sales.daily", "--id", "x").stdout
        assert run(script, "publish", "sales.daily").stdout == "sales.daily is updated. Nobody runs.\n"
    assert first == "sales.daily is updated. It runs report (20270615T060000Z-ab).\n"
    assert asked(script) == ["POST /datasets/sales.daily/updates"] * 2
    assert [json.loads(question.body) for question in script.questions] == [{"id": "x"}, {}]


# Files.


def test_files_are_shown_with_what_became_of_them() -> None:
    errors = [{"path": "comand", "message": "There is no field."}, {"path": "", "message": "Line 1 is not YAML."}]
    about = {"scannedAt": "2027-06-15T06:00:00Z"}
    items = [
        {"path": "a.yaml", "status": "applied", "jobs": [{"jobId": "a", "version": 3}], "errors": [], **about},
        {"path": "b.yaml", "status": "error", "jobs": [], "errors": errors, **about},
    ]
    with scripted(Answer(200, {"items": items, "nextCursor": None}), EMPTY) as script:
        shown = " ".join(run(script, "files").stdout.split())
        run(script, "files", "--wrong")
    assert "a.yaml applied a (version 3) -" in shown
    assert "comand: There is no field.; Line 1 is not YAML." in shown
    assert [question.path for question in script.questions] == ["/api/v1/files", "/api/v1/files?status=error"]


# Shared objects.


@pytest.mark.parametrize(
    ("kind", "document"),
    [
        ("pool", {"slots": 2}),
        ("calendar", {"weekdays": ["mon"], "closed": ["2026-12-25"]}),
        ("template", {}),
        ("template", {"description": "a\u200bb\x1b[2J\nc", "params": {"on": "yes", "n": "007"}}),
    ],
)
def test_what_get_shows_put_takes_back(kind: str, document: dict[str, Any]) -> None:
    with scripted(Answer(200, {**document, "id": "one", "version": 4})) as script:
        shown = run(script, kind, "get", "one").stdout
        assert run(script, kind, "put", "one", "-f", "-", given=shown).exit_code == 0
        as_json = json.loads(run(script, kind, "get", "one", "--json").stdout)
    assert json.loads(script.questions[1].body) == document
    assert as_json == {**document, "id": "one", "version": 4}
    assert "\u200b" not in shown
    assert "\x1b" not in shown


def test_a_list_of_shared_objects_shows_their_versions() -> None:
    with scripted(Answer(200, {"items": [{"id": "one", "version": 4, "slots": 2}], "nextCursor": None})) as script:
        assert run(script, "pool", "list").stdout == "ID   VERSION\none  4\n"


# Runs.


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "There are no such runs in the last day, by their fire time: --since looks further back.\n"),
        (
            ["--until", "2h"],
            "There are no such runs in the day before --until, by their fire time: --since looks further back.\n",
        ),
        (["--since", "2h"], "There are no such runs.\n"),
        (["--job", "a"], "There are no such runs.\n"),
    ],
)
def test_no_runs_are_told_with_the_time_that_was_looked_at(words: list[str], sentence: str) -> None:
    with scripted(EMPTY) as script:
        assert run(script, "runs", *words).stdout == sentence


@pytest.mark.parametrize("value", ["NaN", "-Infinity", '{"a": NaN}', "1e999", r'"\ud800"', "[" * 40 + "]" * 40])
def test_a_parameter_that_json_lacks_is_refused_by_its_name(value: str) -> None:
    with scripted(EMPTY) as script:
        result = run(script, "trigger", "a", "--param", f"x={value}")
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: param x: ")
    assert "As text, it goes in double quotes.\n" in result.stderr
    assert not script.questions


def test_parameters_are_json_or_else_text() -> None:
    with scripted(Answer(202, {"runId": "r"})) as script:
        given = ["n=1", 'o={"a": [null]}', "t=a b", 'q="NaN"', "e="]
        assert run(script, "trigger", "a", *(word for one in given for word in ("--param", one))).exit_code == 0
    sent = json.loads(script.questions[0].body)["params"]
    assert sent == {"n": 1, "o": {"a": [None]}, "t": "a b", "q": "NaN", "e": ""}


@pytest.mark.parametrize(
    "words", [["trigger", "a", "--param", "x=\udcff"], ["trigger", "a", "--note", "\udcff"], ["get", "\udcff"]]
)
def test_bytes_that_are_no_text_are_an_error_and_no_traceback(words: list[str]) -> None:
    with scripted(EMPTY) as script:
        result = run(script, *words)
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: ")
    assert isinstance(result.exception, SystemExit)


@pytest.mark.parametrize("value", [float("nan"), "\ud800", object()])
def test_the_client_refuses_what_cannot_be_sent(value: object) -> None:
    with scripted(EMPTY) as script, Client(script.url, "hush") as client, pytest.raises(InvalidInput):
        client.trigger("a", params={"x": value})
    assert not script.questions


# Many runs.


def page(action: str, *runs: str, more: str | None, dry: bool = False, error: str | None = None) -> Answer:
    items = [{"jobId": "a", "runId": one, "error": error, "result": {"runId": f"{one}.1"}} for one in runs]
    done = 0 if dry or error else len(runs)
    body = {"action": action, "dryRun": dry, "matched": len(runs), "done": done, "items": items, "nextCursor": more}
    return Answer(200, body)


def test_many_runs_are_changed_page_by_page_to_the_end() -> None:
    pages = [page("cancel", "r1", "r2", more="c1"), page("cancel", more="c2"), page("cancel", "r3", more=None)]
    with scripted(*pages) as script:
        result = run(script, "run", "cancel", "--tag", "t", "--since", "2h")
    assert result.exit_code == 0
    assert result.stdout.endswith("\n3 changed.\n")
    bodies = [json.loads(question.body) for question in script.questions]
    assert [body.pop("cursor", None) for body in bodies] == [None, "c1", "c2"]
    assert bodies[0] == bodies[1] == bodies[2]
    assert len({question.headers["idempotency-key"] for question in script.questions}) == 3


def test_for_programs_the_pages_are_one_answer() -> None:
    pages = [page("rerun", "r1", more="c1"), page("rerun", "r2", more=None, error="Gone.")]
    with scripted(*pages) as script:
        answer = json.loads(run(script, "run", "rerun", "--tag", "t", "--json").stdout)
    assert (answer["matched"], answer["done"], answer["nextCursor"]) == (2, 1, None)
    assert [one["runId"] for one in answer["items"]] == ["r1", "r2"]


def test_a_rerun_of_many_is_of_those_that_failed_unless_it_says_otherwise() -> None:
    with scripted(page("rerun", "r1", more=None, error="Gone.")) as script:
        assert run(script, "run", "rerun", "--tag", "t").stdout.endswith("\n0 changed. 1 could not be.\n")
        run(script, "run", "rerun", "--tag", "t", "--state", "cancelled")
        run(script, "run", "cancel", "--tag", "t")
    assert [json.loads(question.body)["filter"].get("state") for question in script.questions] == [
        "failed",
        "cancelled",
        None,
    ]


def test_a_dry_run_counts_every_page() -> None:
    with scripted(page("rerun", "r1", more="c1", dry=True), page("rerun", "r2", more=None, dry=True)) as script:
        assert run(script, "run", "rerun", "--tag", "t", "--dry-run").stdout.endswith("\n2 would be changed.\n")
    assert [json.loads(question.body)["dryRun"] for question in script.questions] == [True, True]


def test_what_was_changed_before_a_refusal_is_told() -> None:
    with scripted(page("cancel", "r1", more="c1"), Answer(403, {"detail": "Not any more."})) as script:
        result = run(script, "run", "cancel", "--tag", "t")
    assert (result.exit_code, result.stderr) == (1, "Error: Not any more.\n")
    assert result.stdout.endswith("\n1 changed.\n")


@pytest.mark.parametrize(
    "words",
    [
        ["cancel", "a", "r", "--dry-run"],
        ["rerun", "a", "r", "--state", "failed"],
        ["rerun", "--tag", "t", "--from", "failed"],
        ["rerun", "--tag", "t", "--task", "x"],
    ],
)
def test_options_of_one_run_and_of_many_do_not_mix(words: list[str]) -> None:
    with scripted(EMPTY) as script:
        assert run(script, "run", *words).exit_code == 64
    assert not script.questions


def test_all_failed_runs_are_redriven_to_the_end() -> None:
    def page(run: str, cursor: str | None) -> Answer:
        item = {"id": f"a:{run}", "jobId": "a", "runId": run, "error": None, "result": {"runId": f"{run}.1"}}
        told = {"action": "redrive", "dryRun": False, "matched": 1, "done": 1, "items": [item], "nextCursor": cursor}
        return Answer(200, told)

    with scripted(page("r1", "more"), page("r2", None)) as script:
        result = run(script, "deadletters", "redrive", "--all", "--job", "a", "--yes")
    assert result.exit_code == 0
    assert "r1.1" in result.stdout
    assert "r2.1" in result.stdout
    assert result.stdout.endswith("2 are run again.\n")
    assert asked(script) == ["POST /deadletters/redrive", "POST /deadletters/redrive"]


@pytest.mark.parametrize("words", [[], ["a:r", "--all"], ["a:r", "--dry-run"], ["a:r", "--job", "a"]])
def test_some_or_all_are_redriven_and_never_both(words: list[str]) -> None:
    with scripted(EMPTY) as script:
        assert run(script, "deadletters", "redrive", *words).exit_code == 64
    assert not script.questions


def test_a_failed_run_is_redriven_by_job_and_run() -> None:
    with scripted(Answer(202, {"runId": "20261116T060000Z.1"})) as script:
        result = run(script, "deadletters", "redrive", "a:20261116T060000Z")
    assert result.stdout == "a:20261116T060000Z has the new run 20261116T060000Z.1.\n"
    assert asked(script) == ["POST /deadletters/a:20261116T060000Z/redrive"]
