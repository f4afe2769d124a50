"""A Python file and a YAML file that say the same: one document, which the domain takes."""

from __future__ import annotations

from datetime import UTC, datetime
from textwrap import dedent
from typing import Any

import pytest
from ruamel.yaml import YAML

from sweephand.domain.definition import document_of, parse
from tests.dsl.conftest import Compile

NOW = datetime(2026, 3, 1, tzinfo=UTC)

TASKS = """
@task
def extract(region="eu"): ...
@task
def load(raw, mode="full"): ...
@task(timeout="10m", retries=2, pool="warehouse", slots=2, priority="high", labels=["big"])
def report(loaded): ...
"""

SAME: dict[str, tuple[str, str]] = {
    "needs are taken from the calls": (
        """
        @job(schedule="0 6 * * 1-5", timezone="Europe/Berlin", retries=3)
        def daily_report():
            raw = extract()
            report(load(raw))
        """,
        """
        name: daily-report
        schedule: {cron: "0 6 * * 1-5", timezone: Europe/Berlin}
        retries: 3
        tasks:
          - {id: extract, run: {python: "M:extract"}}
          - id: load
            needs: [extract]
            run: {python: "M:load", kwargs: {raw: "${tasks.extract.output}"}}
          - id: report
            needs: [load]
            timeout: 10m
            retries: 2
            pool: warehouse
            slots: 2
            priority: high
            labels: [big]
            run: {python: "M:report", kwargs: {loaded: "${tasks.load.output}"}}
        """,
    ),
    "fields, places, texts and constants": (
        """
        @job(name="a.b", params={"region": "eu"})
        def other():
            raw = extract(params.region)
            given = {"path": raw["path"], "first": raw.files[0].name, "when": run.fireAt, "n": [1, 2.5, None]}
            load(given, f"x-{raw.kind}")
        """,
        """
        name: a.b
        params: {region: eu}
        tasks:
          - {id: extract, run: {python: "M:extract", kwargs: {region: "${params.region}"}}}
          - id: load
            needs: [extract]
            run:
              python: "M:load"
              kwargs:
                raw:
                  path: "${tasks.extract.output.path}"
                  first: "${tasks.extract.output.files.0.name}"
                  when: "${run.fireAt}"
                  n: [1, 2.5, null]
                mode: "x-${tasks.extract.output.kind}"
        """,
    ),
    "parameters of the body are params": (
        """
        @job
        def one(region="eu", *, days=3):
            "What it is for."
            extract(region).x >> step("wait", wait={"for": f"{days}d"})
        """,
        """
        name: one
        description: What it is for.
        params: {region: eu, days: 3}
        tasks:
          - {id: extract, run: {python: "M:extract", kwargs: {region: "${params.region}"}}}
          - {id: wait, needs: [extract], run: {wait: {for: "${params.days}d"}}}
        """,
    ),
    "order, one by one and in lists": (
        """
        @job
        def one():
            a, b, c, d = (extract.options(id=name)() for name in "abcd")
            a >> [b, c] >> d
            d << a
        """,
        """
        name: one
        tasks:
          - {id: a, run: {python: "M:extract"}}
          - {id: b, needs: [a], run: {python: "M:extract"}}
          - {id: c, needs: [a], run: {python: "M:extract"}}
          - {id: d, needs: [b, c, a], run: {python: "M:extract"}}
        """,
    ),
    "maps": (
        """
        @job
        def one():
            files = extract()
            first = load.map(files, mode="brief")
            load.options(id="again", max=50).map(first)
            load.options(id="named").partial(mode=index).map(files, raw=item.path)
            load.options(id="listed").map(["a", "b"])
        """,
        """
        name: one
        tasks:
          - {id: extract, run: {python: "M:extract"}}
          - id: load
            needs: [extract]
            map: {over: "${tasks.extract.output}"}
            run: {python: "M:load", kwargs: {raw: "${item}", mode: brief}}
          - id: again
            needs: [load]
            map: {over: "${tasks.load.output}", max: 50}
            run: {python: "M:load", kwargs: {raw: "${item}"}}
          - id: named
            needs: [extract]
            map: {over: "${tasks.extract.output}"}
            run: {python: "M:load", kwargs: {mode: "${index}", raw: "${item.path}"}}
          - id: listed
            map: {over: [a, b]}
            run: {python: "M:load", kwargs: {raw: "${item}"}}
        """,
    ),
    "branches, rules and conditions": (
        """
        @task.branch
        def decide(rows): return "full"
        @task(branch=True, id="choose")
        def decide_too(): return "full"
        @job
        def one():
            raw = extract()
            full, brief = extract.options(id="full")(), extract.options(id="brief")()
            decide(raw.rows) >> [full, brief]
            decide_too() >> full
            done = step("join", command=["true"], when="none_failed_min_one_success", needs=[full, brief])
            checked = ~((raw.rows >= 3) | (raw.kind == "x")) & (raw.bad != None)
            load.options(if_=checked)(done)
            load.options(id="text", if_=f"{raw.kind} in ['a']")(1)
        """,
        """
        name: one
        tasks:
          - {id: extract, run: {python: "M:extract"}}
          - {id: full, needs: [decide, choose], run: {python: "M:extract"}}
          - {id: brief, needs: [decide], run: {python: "M:extract"}}
          - id: decide
            needs: [extract]
            branch: true
            run: {python: "M:decide", kwargs: {rows: "${tasks.extract.output.rows}"}}
          - {id: choose, branch: true, run: {python: "M:decide_too"}}
          - {id: join, needs: [full, brief], when: none_failed_min_one_success, run: {command: ["true"]}}
          - id: load
            needs: [extract, join]
            if: >-
              (not ((${tasks.extract.output.rows} >= 3) or (${tasks.extract.output.kind} == "x")))
              and (${tasks.extract.output.bad} != null)
            run: {python: "M:load", kwargs: {raw: "${tasks.join.output}"}}
          - id: text
            needs: [extract]
            if: ${tasks.extract.output.kind} in ['a']
            run: {python: "M:load", kwargs: {raw: 1}}
        """,
    ),
    "groups stand for their ends": (
        """
        @job
        def one():
            first = extract()
            with group("ingest") as ingest:
                a = load(1)
                with group("raw"):
                    b = load.options(id="b")(a)
                    load.options(id="c")(a)
            first >> ingest >> step("last", command=["true"])
        """,
        """
        name: one
        tasks:
          - {id: extract, run: {python: "M:extract"}}
          - {id: load, group: ingest, needs: [extract], run: {python: "M:load", kwargs: {raw: 1}}}
          - {id: b, group: ingest.raw, needs: [load], run: {python: "M:load", kwargs: {raw: "${tasks.load.output}"}}}
          - {id: c, group: ingest.raw, needs: [load], run: {python: "M:load", kwargs: {raw: "${tasks.load.output}"}}}
          - {id: last, needs: [b, c], run: {command: ["true"]}}
        """,
    ),
    "steps of every kind": (
        """
        @job
        def below(): extract()
        @job(name="above")
        def one():
            raw = extract()
            step("call", run={"lambda": "load-sales", "payload": {"path": raw.path}})
            step("short", lambda_="load-sales", payload=raw.path)
            step("machine", state_machine="load", input={"a": raw.path})
            step("pack", command=["tar", raw.path], env={"A": "$${tasks.x}"}, skip_exit_code=3, timeout="5m")
            step("look", sensor={"job": "other", "within": "1h"})
            step("ask", approval={"by": ["operator"]})
            step("each", map=raw.files, command=["echo", item], max=10)
            below(region=raw.region)
        """,
        """
        name: above
        tasks:
          - {id: extract, run: {python: "M:extract"}}
          - {id: call, needs: [extract], run: {lambda: load-sales, payload: {path: "${tasks.extract.output.path}"}}}
          - {id: short, needs: [extract], run: {lambda: load-sales, payload: "${tasks.extract.output.path}"}}
          - {id: machine, needs: [extract], run: {stateMachine: load, input: {a: "${tasks.extract.output.path}"}}}
          - id: pack
            needs: [extract]
            timeout: 5m
            run: {command: [tar, "${tasks.extract.output.path}"], env: {A: "$${tasks.x}"}, skipExitCode: 3}
          - {id: look, run: {sensor: {job: other, within: 1h}}}
          - {id: ask, run: {approval: {by: [operator]}}}
          - id: each
            needs: [extract]
            map: {over: "${tasks.extract.output.files}", max: 10}
            run: {command: [echo, "${item}"]}
          - {id: below, needs: [extract], run: {job: below, params: {region: "${tasks.extract.output.region}"}}}
        """,
    ),
    "functions that take things by place": (
        """
        @task(env={"A": "b"}, secrets={"DSN": "warehouse"}, limits={"memory": 256}, cwd="/srv", skip_exit_code=9)
        def places(a, /, b, *rest, c=1, **more): ...
        @task
        def only(a, /, b=2): ...
        @job
        def one():
            places(1, 2, 3, c=4, d=5)
            only(1, 2)
            only.options(id="mapped").map([1])
        """,
        """
        name: one
        tasks:
          - id: places
            run:
              python: "M:places"
              args: [1, 2, 3]
              kwargs: {c: 4, d: 5}
              env: {A: b}
              secrets: {DSN: warehouse}
              limits: {memory: 256}
              cwd: /srv
              skipExitCode: 9
          - {id: only, run: {python: "M:only", args: [1], kwargs: {b: 2}}}
          - {id: mapped, map: {over: [1]}, run: {python: "M:only", args: ["${item}"]}}
        """,
    ),
    "every field of a job": (
        """
        from datetime import datetime, timedelta, timezone
        @job(
            name="full", description="All of it", schedule={"every": "5m"},
            start_at=datetime(2026, 1, 1, tzinfo=timezone.utc), jitter=timedelta(seconds=30),
            catchup="all", overlap="skip", start_deadline=timedelta(hours=1),
            concurrency={"runs": 1}, priority="low", guarantee="at-most-once", retry={"attempts": 2}, timeout=90,
            run_timeout="2h", on_failure="stop", deadline="07:00", pause_after_failures=5,
            notify=[{"on": ["failed"], "to": "sns:alerts"}], tags=("a", "b"),
        )
        def one(): extract()
        """,
        """
        name: full
        description: All of it
        schedule: {every: 5m, startAt: "2026-01-01T00:00:00Z", jitter: 30}
        catchup: all
        overlap: skip
        startDeadline: 3600
        concurrency: {runs: 1}
        priority: low
        guarantee: at-most-once
        retry: {attempts: 2}
        timeout: 90
        runTimeout: 2h
        onFailure: stop
        deadline: "07:00"
        pauseAfterFailures: 5
        notify: [{"on": [failed], to: "sns:alerts"}]
        tags: [a, b]
        tasks: [{id: extract, run: {python: "M:extract"}}]
        """,
    ),
    "datasets": (
        """
        @task(publishes=["sales.daily"])
        def export(): ...
        @job(schedule="@daily", datasets={"any": ["raw", "prices"]}, publishes=["sales.checked"])
        def one():
            export() >> step("check", command=["true"], publishes=["sales.seen"])
        """,
        """
        name: one
        schedule: {cron: "@daily", datasets: {any: [raw, prices]}}
        publishes: [sales.checked]
        tasks:
          - {id: export, publishes: [sales.daily], run: {python: "M:export"}}
          - {id: check, needs: [export], publishes: [sales.seen], run: {command: ["true"]}}
        """,
    ),
}


def from_yaml(text: str) -> dict[str, Any]:
    named = dedent(text).replace('"M:', '"jobs_of_a_test:')
    loaded: dict[str, Any] = YAML(typ="safe", pure=True).load(named)
    return loaded


@pytest.mark.parametrize("case", SAME)
def test_a_python_file_says_what_a_yaml_file_says(compile_file: Compile, case: str) -> None:
    source, text = SAME[case]
    found = compile_file(dedent(source) + TASKS)
    assert "errors" not in found, found
    document, expected = found["jobs"][-1]["document"], from_yaml(text)
    assert document_of(document) == document_of(expected)
    job = parse(document, namespace="default", now=NOW)
    assert job == parse(expected, namespace="default", now=NOW)


def test_a_job_of_a_template_gives_its_parameters_and_may_call_no_task(compile_file: Compile) -> None:
    source = """
    @job(template="nightly", with_={"hour": 12, "region": "us"}, dependencies=["ingest"])
    def load_us():
        "The American one."
    @job(template="nightly", with_={"hour": 1})
    def load_eu(): extract()
    """
    found = compile_file(dedent(source) + TASKS)
    assert [one["document"] for one in found["jobs"]] == [
        {
            "name": "load-us",
            "description": "The American one.",
            "dependencies": ["ingest"],
            "template": "nightly",
            "with": {"hour": 12, "region": "us"},
        },
        {
            "name": "load-eu",
            "template": "nightly",
            "with": {"hour": 1},
            "tasks": [{"id": "extract", "run": {"python": "jobs_of_a_test:extract"}}],
        },
    ]


def test_each_task_has_the_line_that_called_it(compile_file: Compile) -> None:
    found = compile_file("@job\ndef one():\n    raw = extract()\n\n    load(raw)\n" + TASKS)
    assert found["jobs"][0]["lines"] == {"": 2, "tasks[0]": 4, "tasks[1]": 6}


def test_only_the_jobs_that_the_file_makes_are_its_own(compile_file: Compile) -> None:
    helper = """
    from sweephand import job, task
    @task
    def imported(): ...
    @job
    def not_ours(): imported()
    def made(region):
        @job(name=f"sales-{region}")
        def sales(): imported.options(id=region)()
        return sales
    """
    found = compile_file(
        "from shared_things import made, not_ours\nfor region in ('eu', 'us'):\n    made(region)\n",
        shared_things=helper,
    )
    assert [one["document"]["name"] for one in found["jobs"]] == ["sales-eu", "sales-us"]
    assert found["jobs"][1]["document"]["tasks"] == [{"id": "us", "run": {"python": "shared_things:imported"}}]
    assert found["modules"] == ["jobs_of_a_test", "shared_things"]


def test_a_file_of_a_package_is_named_by_its_package(compile_file: Compile, tmp_path: Any) -> None:
    from sweephand.dsl.files import root_of

    (tmp_path / "pack" / "inner").mkdir(parents=True)
    for folder in ("pack", "pack/inner"):
        (tmp_path / folder / "__init__.py").touch()
    assert root_of(tmp_path / "pack" / "inner" / "jobs.py") == (tmp_path, "pack.inner.jobs")
    assert root_of(tmp_path / "pack" / "__init__.py") == (tmp_path, "pack")
    assert root_of(tmp_path / "jobs.py") == (tmp_path, "jobs")
