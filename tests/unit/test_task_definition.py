"""Tasks as people write them: how they are read, what they can say of each other, and what is refused."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from sweephand.domain.conditions import parse_condition
from sweephand.domain.definition import decode_version, document_of, encode_version, parse
from sweephand.domain.ids import JobKey, JobName, Namespace
from sweephand.domain.job import Job, JobVersion, Map, OnFailure, Priority, Task, TriggerRule
from sweephand.domain.limits import MAPPED_MAX, MAPPED_USUAL_MAX, TASKS_MAX
from sweephand.domain.retry import Retry
from sweephand.errors import InvalidInput

NOW = datetime(2026, 11, 15, 6, tzinfo=UTC)
KEY = JobKey(Namespace("default"), JobName("job"))
JSON = dict[str, Any]


def job_of(*tasks: JSON, **fields: Any) -> Job:
    return parse({"name": "job", "tasks": list(tasks), **fields}, namespace="default", now=NOW)


def errors_of(*tasks: JSON, **fields: Any) -> dict[str, str]:
    with pytest.raises(InvalidInput) as refused:
        job_of(*tasks, **fields)
    return dict(refused.value.errors)


def task(name: str, *needs: str, says: Any = None, **fields: Any) -> JSON:
    return {"id": name, "needs": list(needs), "run": {"lambda": "f", "payload": says}, **fields}


FULL: JSON = {
    "id": "load",
    "needs": ["list"],
    "when": "none_failed",
    "if": "${item.size} > 0 and ${tasks.list.output} != null",
    "map": {"over": "${tasks.list.output}", "max": 50},
    "pool": "warehouse",
    "slots": 2,
    "priority": "low",
    "labels": ["gpu"],
    "group": "ingest.raw",
    "retries": 2,
    "timeout": "10m",
    "run": {"lambda": "f", "payload": {"path": "${item.path}", "n": "${index}"}},
}


def test_everything_that_a_task_says_is_read_and_stored() -> None:
    job = job_of(task("list"), FULL, task("pick", "load", branch=True), task("end", "pick"))
    assert job.tasks[1] == Task(
        id="load",
        kind="lambda",
        spec={"value": "f", "payload": {"path": "${item.path}", "n": "${index}"}},
        needs=("list",),
        retry=Retry(attempts=3),
        timeout=timedelta(minutes=10),
        when=TriggerRule.NONE_FAILED,
        condition="${item.size} > 0 and ${tasks.list.output} != null",
        map=Map("${tasks.list.output}", 50),
        pool="warehouse",
        slots=2,
        priority=Priority.LOW,
        labels=("gpu",),
        group="ingest.raw",
    )
    assert job.tasks[2].branch
    assert job.on_failure is OnFailure.FINISH


def test_what_is_stored_comes_back_as_the_same_job() -> None:
    tasks = [task("list"), FULL, task("all", "load", map={"over": [1, {"a": "${params.x}"}]})]
    document = {"name": "job", "tasks": tasks, "onFailure": "finish"}
    job = parse(document, namespace="default", now=NOW)
    version = JobVersion(KEY, 1, NOW, "ada", document_of(document), job)
    assert decode_version(KEY, json.loads(json.dumps(encode_version(version)))).job == job


def test_a_task_that_says_little_has_the_usual() -> None:
    (usual,) = job_of({"id": "a", "run": {"lambda": "f"}}).tasks
    assert usual == Task("a", "lambda", {"value": "f"})
    assert job_of(task("a", map={"over": "${params.x}"})).tasks[0].map == Map("${params.x}", MAPPED_USUAL_MAX)
    assert job_of(task("a"), onFailure="stop").on_failure is OnFailure.STOP


@pytest.mark.parametrize(
    ("fields", "path", "said"),
    [
        ({"when": "all_succeeded"}, "when", "use all_success"),
        ({"if": "1 = 1"}, "if", "At character 3"),
        ({"if": 1}, "if", "not text"),
        ({"if": "x" * 1_025}, "if", "1 to 1024"),
        ({"map": "${params.x}"}, "map", "not an object"),
        ({"map": {}}, "map.over", "required"),
        ({"map": {"over": "list"}}, "map.over", "mapped over a template that gives a list"),
        ({"map": {"over": "x${params.x}"}}, "map.over", "mapped over a template that gives a list"),
        ({"map": {"over": "${params.x"}}, "map.over", "has no end"),
        ({"map": {"over": "${secrets.x}"}}, "map.over", "cannot stand here"),
        ({"map": {"over": ["${secrets.x}"]}}, "map.over[0]", "cannot stand here"),
        ({"map": {"over": {"a": 1}}}, "map.over", "not text"),
        ({"map": {"over": "${params.x}", "max": MAPPED_MAX + 1}}, "map.max", "1 to 10000"),
        ({"map": {"over": "${params.x}", "max": 0}}, "map.max", "1 to 10000"),
        ({"map": {"over": [1, 2, 3], "max": 2}}, "map.over", "The list has 3 items"),
        ({"map": {"over": [1], "most": 2}}, "map.most", "no field 'most'"),
        ({"branch": "yes"}, "branch", "neither true nor false"),
        ({"branch": True}, "branch", "No task needs this one"),
        ({"branch": True, "map": {"over": [1]}}, "branch", "A mapped task cannot be a branch"),
        ({"publishes": ["rows"], "map": {"over": [1]}}, "publishes", "let the job, or a task that needs it, publish"),
        ({"publishes": []}, "publishes", "0 items"),
        ({"slots": 2}, "slots", "they go together"),
        ({"slots": 0, "pool": "a"}, "slots", "1 to 500"),
        ({"group": "a..b"}, "group", "such as ingest.raw"),
        ({"group": "a."}, "group", "such as ingest.raw"),
        ({"group": ""}, "group", "1 to 128"),
        ({"whem": "always"}, "whem", "did you mean 'when'?"),
    ],
)
def test_what_is_wrong_with_a_task_is_named_by_its_path(fields: JSON, path: str, said: str) -> None:
    errors = errors_of(task("first"), task("a", **fields))
    assert said in errors[f"tasks[1].{path}"]


def test_where_a_failure_stops_everything_no_rule_waits_for_one() -> None:
    errors = errors_of(
        task("a"), task("b", "a", when="one_failed"), task("c", "a", when="all_success"), onFailure="stop"
    )
    assert list(errors) == ["tasks[1].when"]
    assert errors_of(task("a"), onFailure="fast").keys() == {"onFailure"}


# Templates between tasks.


@pytest.mark.parametrize(
    ("says", "path", "said"),
    [
        (
            "${tasks.extrat.output.x}",
            "run.payload",
            "no task 'extrat' before this one: did you mean 'extract'?",
        ),
        ({"a": ["x ${tasks.later.output}"]}, "run.payload.a[0]", "Task 'later' need not have ended"),
        ("${tasks.beside.output}", "run.payload", "add it to its 'needs'"),
        ("${tasks.load.output}", "run.payload", "its own output"),
        ("${tasks.extract}", "run.payload", "${tasks.extract.output}"),
        ("${tasks.extract.outputs.x}", "run.payload", "${tasks.extract.output}"),
        ("${tasks}", "run.payload", "name one, such as ${tasks.extract.output}"),
        ("${tasks.output.x}", "run.payload", "name one"),
        ("${item}", "run.payload", "known only where a task is mapped"),
        ("${index}", "run.payload", "known only where a task is mapped"),
    ],
)
def test_a_template_names_a_task_that_comes_before(says: Any, path: str, said: str) -> None:
    tasks = [task("beside"), task("extract"), task("load", "clean", says=says), task("later", "load")]
    errors = errors_of(*tasks, task("clean", "extract"))
    assert list(errors) == [f"tasks[2].{path}"]
    assert said in errors[f"tasks[2].{path}"]


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"if": "${tasks.b.output} == 1"}, "if"),
        ({"map": {"over": "${tasks.b.output}"}}, "map.over"),
        ({"map": {"over": [1, "${tasks.b.output}"]}}, "map.over[1]"),
        ({"map": {"over": "${item}"}}, "map.over"),
        ({"if": "${item} == 1"}, "if"),
    ],
)
def test_conditions_and_maps_name_tasks_that_come_before_too(fields: JSON, path: str) -> None:
    assert errors_of(task("a", **fields), task("b")).keys() == {f"tasks[0].{path}"}


def test_every_task_before_may_be_named_also_one_with_dots() -> None:
    text = "${tasks.a.b.output.x} ${tasks.a.output} $${tasks.nowhere}"
    job_of(task("a"), task("a.b", "a"), task("c", "a.b"), task("d", "c", says=text))
    job_of(task("a"), task("b", "a", run={"command": "echo ${HOME} ${item}; echo ${tasks.a.output}", "shell": True}))
    errors = errors_of(task("a"), {"id": "b", "run": {"command": "echo ${tasks.a.output}", "shell": True}})
    assert list(errors) == ["tasks[1].run.command"]
    errors = errors_of(task("a"), {"id": "b", "command": "echo ${tasks.a.output}"})
    assert list(errors) == ["tasks[1].command"]


def test_a_job_of_one_step_has_no_tasks_to_name() -> None:
    with pytest.raises(InvalidInput) as refused:
        parse({"name": "job", "run": {"lambda": "f", "payload": "${tasks.a.output}"}}, namespace="default", now=NOW)
    assert refused.value.path == "run.payload"


# Sizes. Every shape in well under a second a thousand tasks; a quadratic one would take minutes.


@pytest.mark.parametrize(
    ("count", "shape"),
    [
        (TASKS_MAX, lambda n: task(f"t{n}", *([f"t{n - 1}"] if n else []), says="${tasks.t0.output}" if n else None)),
        (TASKS_MAX, lambda n: task(f"t{n}", *(["t0"] if n else []), says="${tasks.t0.output}" if n else None)),
        (5_000, lambda n: task(f"t{n}", *(f"t{one}" for one in range(max(0, n - 20), n)))),
        (400, lambda n: task(f"t{n}", *(f"t{one}" for one in range(100 if n >= 100 else 0)))),
    ],
    ids=["deep", "wide", "twenty parents each", "a hundred parents for all"],
)
def test_ten_thousand_tasks_that_name_each_other_are_read(count: int, shape: Callable[[int], JSON]) -> None:
    assert len(job_of(*map(shape, range(count))).tasks) == count


def test_ten_thousand_wrong_names_are_refused_as_quickly() -> None:
    errors = errors_of(
        *(task(f"t{n}", *([f"t{n - 1}"] if n else []), says="${tasks.x.output}") for n in range(TASKS_MAX))
    )
    assert "There are more errors" in errors[""]


def test_a_hundred_thousand_tasks_or_items_are_refused() -> None:
    assert "at most 10000 are right" in errors_of(*({"id": f"t{n}"} for n in range(20_000)))["tasks"]
    tasks = [{"id": str(n)} for n in range(100_000)]
    with pytest.raises(InvalidInput):
        job_of(*tasks)
    with pytest.raises(InvalidInput, match="more than"):
        job_of(task("a", map={"over": [0] * 1_000_000}))


def test_the_job_in_the_documentation_is_one() -> None:
    page = (Path(__file__).parents[2] / "docs" / "dags.md").read_text()
    (shown,) = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    job = parse(YAML(typ="safe").load(shown), namespace="default", now=NOW)
    assert [one.id for one in job.tasks] == ["files", "load", "decide", "full", "brief", "send", "clean"]
    (conditions,) = re.findall(r"```\n(\$.*?)```", page, re.DOTALL)
    assert len([parse_condition(line, "if") for line in conditions.splitlines()]) == 2
    assert all(f"| `{rule}`" in page for rule in TriggerRule)
