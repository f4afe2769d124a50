"""A folder of jobs and a real `sweephand up`: its code runs, its edits are versions, what it loses is pruned."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from sweephand import Client
from tests.cli.conftest import Server
from tests.cli.test_up import asked, run
from tests.local.waiting import until

EXAMPLE = Path(__file__).parents[2] / "examples" / "sales"
LABEL = ("--label", "team=sales")


@pytest.fixture
def folder(home: Path) -> Path:
    """The example's, to be changed."""
    return Path(shutil.copytree(EXAMPLE, home / "sales", ignore=shutil.ignore_patterns("__pycache__")))


def outputs(job: str, run_id: str) -> dict[str, Any]:
    with Client() as client:
        return {task["id"]: task.get("output") for task in client.tasks(job, run_id)}


def codes(job: str) -> set[str]:
    return {task["run"]["code"] for task in asked("get", job)["tasks"] if "python" in task["run"]}


def triggered(job: str, *words: str) -> str:
    found: str = asked("trigger", job, "--wait", *words)["runId"]
    return found


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_the_example_is_planned_applied_run_changed_and_pruned(server: Server, folder: Path) -> None:
    dry = run("apply", "-f", "sales", *LABEL, "--dry-run", code=2)
    assert "+ daily-sales: to create, sales/daily.py" in dry.stdout
    assert "Plan: 2 to create." in dry.stdout
    run("get", "daily-sales", code=1)
    assert "Applied 2 of 2." in run("apply", "-f", "sales", *LABEL).stdout
    assert "Plan: 2 unchanged." in run("apply", "-f", "sales", *LABEL, "--dry-run", code=0).stdout
    job = asked("get", "daily-sales")
    assert (job["description"], job["tags"]) == ("Sum up the sales of every region.", ["finance", "team=sales"])
    (first,) = codes("daily-sales")
    assert run("code", "get", first).stdout.startswith(f"The code {first} has ")

    told = outputs("daily-sales", triggered("daily-sales"))
    assert told["total"] == {"sum": 120, "currency": "EUR", "regions": ["eu", "us"]}
    assert (told["decide"], told["celebrate"]) == ("celebrate", "120 EUR from eu and us")

    # A file that the code reads is code too.
    (folder / "shop" / "orders.json").write_text('{"eu": [1], "us": [2]}')
    changed = run("apply", "-f", "sales", *LABEL, "--dry-run", code=2).stdout
    assert "~ daily-sales: to change (version 1), sales/daily.py" in changed
    assert f"task load: run.code {first} → " in changed
    assert "Plan: 1 to change, 1 unchanged." in changed
    run("apply", "-f", "sales", *LABEL)
    assert codes("daily-sales") != {first}
    told = outputs("daily-sales", triggered("daily-sales"))
    assert (told["total"]["sum"], told["decide"], told["celebrate"]) == (3, "regret", None)
    run("code", "get", first)  # it stays, for the version that names it
    with Client() as client:
        client.rollback("daily-sales", 1)
    assert outputs("daily-sales", triggered("daily-sales"))["total"]["sum"] == 120

    # What the folder loses goes, and only what is the folder's.
    run(
        "apply", "-f", "-", "-y", given=json.dumps({"name": "somebody-elses", "command": ["true"], "tags": ["finance"]})
    )
    (folder / "weekly.yaml").unlink()
    plan = run("apply", "-f", "sales", *LABEL, "--prune", "--dry-run", code=2).stdout
    assert "- weekly-cleaning: to delete (version 1), which no file has any more" in plan
    assert "somebody-elses" not in plan
    assert asked("get", "weekly-cleaning")["version"] == 1
    pruned = asked("apply", "-f", "sales", *LABEL, "--prune")
    assert [(one["name"], one["action"], one["outcome"]) for one in pruned][1:] == [
        ("weekly-cleaning", "delete", "applied")
    ]
    run("get", "weekly-cleaning", code=1)
    run("get", "somebody-elses")
    run("apply", "-f", "sales", *LABEL, "--prune", "--dry-run", code=0)


WAITS = """
from pathlib import Path
from sweephand import job, task

MARK = "old"

@task
def first(folder):
    (Path(folder) / "began").touch()
    while not (Path(folder) / "go").exists():
        pass

@task
def second():
    return MARK

@job(timeout="1m")
def waits(folder=""):
    first(folder) >> second()
"""


def test_a_run_stays_with_the_code_of_its_version(server: Server, home: Path) -> None:
    (home / "waits.py").write_text(WAITS)
    run("apply", "waits.py", "-y")
    begun = asked("trigger", "waits", "--param", f"folder={home}")["runId"]
    until((home / "began").exists, within_s=60, what="the first task runs")
    edit(home / "waits.py", '"old"', '"new"')
    run("apply", "waits.py", "-y")
    assert asked("get", "waits")["version"] == 2
    (home / "go").touch()
    with Client() as client:
        until(lambda: client.run("waits", begun)["state"] == "succeeded", within_s=60, what="the run ends")
        assert client.run("waits", begun)["version"] == 1
    assert outputs("waits", begun)["second"] == "old"
    assert outputs("waits", triggered("waits", "--param", f"folder={home}"))["second"] == "new"


def test_all_that_is_wrong_is_told_at_once_and_nothing_is_done(server: Server, home: Path) -> None:
    jobs = home / "mixed"
    jobs.mkdir()
    (jobs / "a.yaml").write_text("name: fine-one\ncommand: 'true'\n")
    (jobs / "b.yaml").write_text("name: bad-one\ncommand: 'true'\n\nschedule: {cron: '61 * * * *'}\n")
    (jobs / "c.py").write_text("from sweephand import job, step\n@job\ndef wrong():\n    step('a b', command=['x'])\n")
    (jobs / "d.py").write_text("from sweephand import job, step\n@job\ndef late():\n\n    step('a', comand=['x'])\n")
    (jobs / "e.json").write_text("{")
    result = run("apply", "-f", "mixed", code=1)
    lines = result.stderr.splitlines()
    assert lines[0] == "Error: Nothing was changed."
    assert [line.split(": ")[0].strip() for line in lines[1:]] == [
        "mixed/c.py:4",
        "mixed/e.json:1",
        "mixed/b.yaml:4",
        "mixed/d.py:5",
    ]
    assert "There is no kind of step 'comand'" in lines[4]
    run("get", "fine-one", code=1)
    assert run("apply", "-f", "mixed", "--dry-run", code=1).stderr == result.stderr

    kept = run("apply", "-f", "mixed", "--keep-going", "--label", "x=y", "--prune", code=1)
    assert "Applied 1 of 1." in kept.stdout
    assert "4 not applied" in kept.stderr
    run("get", "fine-one")
    (jobs / "a.yaml").unlink()
    run("apply", "-f", "mixed", "--keep-going", "--label", "x=y", "--prune", code=1)
    run("get", "fine-one")  # a file that cannot be read may have been its own


def test_of_two_files_of_one_job_neither_is_applied(server: Server, home: Path) -> None:
    for name in ("one", "two"):
        (home / f"{name}.yaml").write_text(f"name: said-twice\ncommand: 'echo {name}'\n")
    (home / "other.yaml").write_text("name: said-once\ncommand: 'true'\n")
    result = run("apply", "one.yaml", "two.yaml", "other.yaml", "--keep-going", code=1)
    assert "two.yaml:1: name: The job 'said-twice' is in one.yaml too." in result.stderr
    run("get", "said-twice", code=1)
    run("get", "said-once")


def test_only_who_has_every_label_is_pruned(server: Server, home: Path) -> None:
    (home / "one.yaml").write_text("name: pruned-one\ncommand: 'true'\n")
    (home / "two.yaml").write_text("name: pruned-two\ncommand: 'true'\ntags: [own]\n")
    run("apply", "one.yaml", "--label", "a=1", "--label", "b=2")
    run("apply", "two.yaml", "--label", "a=1")
    assert asked("get", "pruned-two")["tags"] == ["own", "a=1"]
    (home / "three.yaml").write_text("name: pruned-three\ncommand: 'true'\n")
    run("apply", "three.yaml", "--label", "a=1", "--label", "b=2", "--prune")
    run("get", "pruned-one", code=1)
    run("get", "pruned-two")


@pytest.mark.parametrize("words", [["--prune"], ["--label", "team"], ["--label", "a b=c"]])
def test_labels_and_pruning_are_said_in_full(server: Server, home: Path, words: list[str]) -> None:
    (home / "one.yaml").write_text("name: never\ncommand: 'true'\n")
    assert run("apply", "one.yaml", *words, code=64).exit_code == 64
    run("get", "never", code=1)


def test_a_pack_can_be_stored_by_hand(server: Server, home: Path) -> None:
    from sweephand.domain.zips import digest_of, zipped

    content = zipped({"byhand.py": b"def told(): return 42\n"})
    (home / "byhand.zip").write_bytes(content)
    assert run("code", "put", "byhand.zip").stdout == f"{digest_of(content)}\n"
    definition = {"name": "by-hand", "run": {"python": "byhand:told", "code": digest_of(content)}}
    run("apply", "-f", "-", "-y", given=json.dumps(definition))
    with Client() as client:
        assert client.run("by-hand", triggered("by-hand"))["output"] == 42
    assert "Python 3." in run("code", "target").stdout
    (home / "bad.zip").write_bytes(b"no zip")
    assert "It is no zip" in run("code", "put", "bad.zip", code=1).stderr
    assert "cannot be read" in run("code", "put", "gone.zip", code=1).stderr


def test_a_python_job_of_a_template_needs_no_task_of_its_own(server: Server) -> None:
    template = {"parameters": {"word": {"type": "string"}}, "command": ["echo", "${with.word}"]}
    Path("echoing.yaml").write_text(json.dumps(template))
    run("template", "put", "echoing", "-f", "echoing.yaml")
    Path("made.py").write_text(
        "from sweephand import job\n\n\n"
        "@job(template='echoing', with_={'word': 'hello'}, publishes=['words'])\n"
        "def hello():\n    'Says it.'\n"
    )
    assert "Applied 1 of 1." in run("apply", "-f", "made.py").stdout
    made = asked("get", "hello")
    assert (made["tasks"][0]["run"]["command"], made["publishes"]) == (["echo", "hello"], ["words"])
