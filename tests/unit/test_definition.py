"""Definitions: what they mean, everything that is refused, and the stored form of versions."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweephand.domain.definition import (
    DOCUMENT_BYTES_MAX,
    decode_version,
    document_of,
    encode_version,
    parse,
)
from sweephand.domain.fields import ERRORS_MAX
from sweephand.domain.ids import JobKey, JobName, Namespace
from sweephand.domain.job import (
    Catchup,
    CatchupPolicy,
    Concurrency,
    Guarantee,
    Job,
    JobVersion,
    Overlap,
    Priority,
    Task,
    TriggerRule,
)
from sweephand.domain.kinds import KINDS, Offer
from sweephand.domain.limits import TASKS_MAX
from sweephand.domain.plain import DEPTH_MAX
from sweephand.domain.retry import Backoff, Retry
from sweephand.domain.schedule import EPOCH, At, Blackout, Every, Fold, Gap, HoldPolicy, Schedule
from sweephand.errors import InvalidInput

NOW = datetime(2026, 11, 15, 6, 0, 0, 123456, tzinfo=UTC)
KEY = JobKey(Namespace("default"), JobName("daily-report"))

SHORT: dict[str, Any] = {
    "name": "daily-report",
    "schedule": "0 0 * * *",
    "command": "python 'generate report.py' --fast",
    "dependencies": ["job1"],
    "retries": 3,
    "timeout": 3600,
}
LONG: dict[str, Any] = {
    "name": "daily-report",
    "description": "Sales report for the team",
    "schedule": {
        "cron": "0 6 * * 1-5",
        "timezone": "Europe/Berlin",
        "dst": {"gap": "skip", "fold": "both"},
        "startAt": "2026-01-01T00:00:00Z",
        "endAt": None,
        "jitter": "30s",
        "calendar": "business-days",
        "blackouts": [{"from": "2026-12-24T00:00:00Z", "to": "2026-12-27T00:00:00+01:00", "policy": "hold"}],
        "after": ["ingest"],
        "events": [{"source": "shop", "type": "closed", "match": {"region": "eu"}}],
    },
    "catchup": {"policy": "all", "max": 7, "window": "2d"},
    "overlap": "queue",
    "startDeadline": "1h",
    "concurrency": {"runs": 2, "pool": "warehouse", "slots": 3},
    "priority": "high",
    "guarantee": "effectively-once",
    "retry": {
        "attempts": 4,
        "backoff": "exponential",
        "delay": "10s",
        "maxDelay": "5m",
        "on": ["transient", "Throttled"],
        "never": ["InvalidInput"],
    },
    "timeout": "1h30m",
    "runTimeout": "6h",
    "deadline": "07:00",
    "pauseAfterFailures": 5,
    "notify": [{"on": ["failed", "deadlineMissed"], "to": "sns:alerts"}],
    "params": {"region": "eu"},
    "tags": ["finance"],
    "tasks": [
        {
            "id": "extract",
            "run": {
                "command": ["python", "extract.py", "${params.region}"],
                "env": {},
                "secrets": {"DB": "warehouse-dsn"},
            },
        },
        {
            "id": "load",
            "needs": ["extract"],
            "when": "all_success",
            "if": "${tasks.extract.output.rows} > 0",
            "map": {"over": "${tasks.extract.output}", "max": 50},
            "pool": "warehouse",
            "priority": "low",
            "labels": ["gpu"],
            "retry": {"attempts": 2, "delays": ["1s", "1m"]},
            "run": {"lambda": "load-sales", "payload": {"path": "${tasks.extract.output.path}"}},
        },
        {
            "id": "report",
            "needs": ["load"],
            "run": {"container": {"image": "report:1", "command": ["report"], "cpu": 1024, "memory": 2048}},
            "timeout": "6h",
        },
    ],
}


def job_of(document: Any, **changes: Any) -> Job:
    return parse({**document, **changes}, namespace="default", now=NOW, operators={"dbt": Offer()})


def errors_of(document: Any, **changes: Any) -> dict[str, str]:
    with pytest.raises(InvalidInput) as refused:
        job_of(document, **changes) if changes else parse(document, namespace="default", now=NOW)
    return dict(refused.value.errors)


def minimal(**fields: Any) -> dict[str, Any]:
    return {"name": "job", "command": "true", **fields}


def one_task(**fields: Any) -> dict[str, Any]:
    return {"name": "job", "tasks": [{"id": "a", "run": {"command": ["true"]}, **fields}]}


# What a definition means.


def test_the_short_form_means_the_long_one() -> None:
    job = job_of(SHORT)
    assert job.tasks == (Task("main", "command", {"value": ["python", "generate report.py", "--fast"]}),)
    assert job.retry == Retry(attempts=4)
    assert job.timeout == timedelta(hours=1)
    assert job.schedule is not None
    assert job.schedule.next_after(NOW) == datetime(2026, 11, 16, tzinfo=UTC)
    assert list(document_of(SHORT).items()) == [
        ("name", "daily-report"),
        ("schedule", {"cron": "0 0 * * *", "after": ["job1"]}),
        ("tasks", [{"id": "main", "run": {"command": ["python", "generate report.py", "--fast"]}}]),
        ("retry", {"attempts": 4}),
        ("timeout", 3600),
    ]


def test_every_field_of_the_long_form_is_read() -> None:
    job = job_of(LONG)
    blackout = Blackout(datetime(2026, 12, 24, tzinfo=UTC), datetime(2026, 12, 26, 23, tzinfo=UTC), HoldPolicy.HOLD)
    assert job.schedule is not None
    assert job.schedule == Schedule(
        job.schedule.recurrence,
        "Europe/Berlin",
        Gap.SKIP,
        Fold.BOTH,
        datetime(2026, 1, 1, tzinfo=UTC),
        None,
        timedelta(seconds=30),
        "business-days",
        (blackout,),
    )
    assert job.schedule.next_after(NOW) == datetime(2026, 11, 16, 5, tzinfo=UTC)
    assert job.description == "Sales report for the team"
    assert job.catchup == Catchup(CatchupPolicy.ALL, 7, timedelta(days=2))
    assert job.overlap is Overlap.QUEUE
    assert job.start_deadline == timedelta(hours=1)
    assert job.concurrency == Concurrency(2, "warehouse", 3)
    assert job.priority is Priority.HIGH
    assert job.guarantee is Guarantee.EFFECTIVELY_ONCE
    assert job.retry == Retry(
        attempts=4,
        delay=timedelta(seconds=10),
        delay_max=timedelta(minutes=5),
        on=("transient", "Throttled"),
        never=("InvalidInput",),
    )
    assert job.timeout == timedelta(minutes=90)
    assert job.run_timeout == timedelta(hours=6)
    assert job.pause_after_failures == 5
    assert job.params == {"region": "eu"}
    assert job.tags == ("finance",)
    extract, load, report = job.tasks
    assert extract == Task(
        "extract",
        "command",
        {
            "value": ["python", "extract.py", "${params.region}"],
            "env": {},
            "secrets": {"DB": "warehouse-dsn"},
        },
    )
    assert load.needs == ("extract",)
    assert load.kind == "lambda"
    assert load.spec == {"value": "load-sales", "payload": {"path": "${tasks.extract.output.path}"}}
    delays = (timedelta(seconds=1), timedelta(minutes=1))
    assert load.retry == Retry(attempts=2, backoff=Backoff.LIST, delays=delays)
    assert report.timeout == timedelta(hours=6)
    assert report.spec == LONG["tasks"][2]["run"]["container"]
    assert document_of(LONG) == LONG


def test_the_defaults_are_those_that_the_interface_states() -> None:
    job = job_of(minimal(schedule="@daily"))
    assert job.schedule is not None
    assert job.schedule.timezone == "UTC"
    assert job.catchup == Catchup(CatchupPolicy.LATEST, 100, timedelta(days=1))
    assert (job.overlap, job.concurrency.runs, job.active_max) == (Overlap.ALLOW, None, None)
    assert job.retry.attempts == 1
    assert job.timeout == timedelta(hours=1)
    assert (job.start_deadline, job.run_timeout, job.pause_after_failures) == (None, None, None)
    assert (job.guarantee, job.priority) == (Guarantee.AT_LEAST_ONCE, Priority.NORMAL)


def test_null_means_absent() -> None:
    nulls = dict.fromkeys(["schedule", "catchup", "retry", "retries", "timeout", "tags", "tasks", "run"])
    assert job_of(minimal(), **nulls) == job_of(minimal())
    assert document_of(minimal(**nulls)) == document_of(minimal())


def test_a_rate_counts_from_its_start_or_from_the_second_in_which_it_was_made() -> None:
    begun = NOW.replace(microsecond=0)
    assert job_of(minimal(schedule="rate(5 minutes)")).schedule == Schedule(Every(timedelta(minutes=5), begun))
    started = job_of(minimal(schedule={"cron": "rate(1 hour)", "startAt": "2026-01-01T00:00:07Z"})).schedule
    assert started is not None
    assert started.recurrence == Every(timedelta(hours=1), datetime(2026, 1, 1, 0, 0, 7, tzinfo=UTC))


def test_an_interval_counts_from_its_start_or_from_the_epoch_so_that_edits_do_not_move_it() -> None:
    plain = job_of(minimal(schedule={"every": "5m"})).schedule
    assert plain == Schedule(Every(timedelta(minutes=5), EPOCH))
    started = job_of(minimal(schedule={"every": 90, "startAt": "2026-01-01T00:00:07Z"})).schedule
    assert started is not None
    assert started.recurrence == Every(timedelta(seconds=90), datetime(2026, 1, 1, 0, 0, 7, tzinfo=UTC))


def test_a_one_shot_is_an_instant_with_any_offset() -> None:
    schedule = job_of(minimal(schedule={"at": "2026-12-01T01:00:00+01:00"})).schedule
    assert schedule == Schedule(At(datetime(2026, 12, 1, tzinfo=UTC)))


def test_a_job_that_waits_for_other_jobs_or_events_has_no_schedule_of_fires() -> None:
    assert job_of(minimal(dependencies=["ingest"])).schedule is None
    assert job_of(minimal(schedule={"after": ["ingest"]})).schedule is None
    assert job_of(minimal(schedule={"events": [{"source": "shop"}]})).schedule is None
    assert document_of(minimal(dependencies=["ingest"]))["schedule"] == {"after": ["ingest"]}


def test_a_hash_in_an_expression_depends_on_namespace_and_name() -> None:
    hashed = minimal(schedule="H H * * *")
    here = parse(hashed, namespace="a", now=NOW).schedule
    assert here == parse(hashed, namespace="a", now=NOW + timedelta(days=9)).schedule
    others = {parse(hashed, namespace=f"n{n}", now=NOW).schedule for n in range(20)}
    assert len(others) > 10
    assert here != parse({**hashed, "name": "other"}, namespace="a", now=NOW).schedule


def test_a_delay_longer_than_the_usual_cap_lifts_it() -> None:
    assert job_of(minimal(retry={"attempts": 2, "delay": "1h"})).retry.delay_max == timedelta(hours=1)
    assert errors_of(minimal(), retry={"delay": "1h", "maxDelay": "1m"}).keys() == {"retry.maxDelay"}


def test_catchup_may_be_just_its_policy() -> None:
    assert job_of(minimal(catchup="none")).catchup == Catchup(CatchupPolicy.NONE)
    assert document_of(minimal(catchup="none"))["catchup"] == {"policy": "none"}


def test_a_shell_line_stays_a_line() -> None:
    line = {"command": "cat 'a b' | sort", "shell": True}
    assert job_of({"name": "job", "run": line}).tasks[0].spec == {"value": line["command"], "shell": True}
    assert document_of({"name": "job", "run": line})["tasks"] == [{"id": "main", "run": line}]


STEPS: Mapping[str, dict[str, Any]] = {
    "command": {"command": ["true"], "cwd": "data", "skipExitCode": 3, "limits": {"memory": 512}},
    "python": {"python": "reports:daily", "args": [1], "kwargs": {"a": 1}, "code": "0" * 64},
    "container": {"container": {"image": "a:1"}},
    "lambda": {"lambda": "load", "async": True},
    "http": {"http": {"url": "https://example.org/", "method": "POST", "headers": {"A": ""}, "body": {}}},
    "sqs": {"sqs": "queue", "body": {"a": 1}, "group": "g"},
    "sns": {"sns": "topic", "message": "m", "subject": "s"},
    "event": {"event": {"source": "shop", "type": "closed", "detail": {}}},
    "stateMachine": {"stateMachine": "arn:aws:states:eu:1:stateMachine:a", "input": {}},
    "awsSdk": {"awsSdk": {"service": "s3", "action": "CopyObject", "params": {}}},
    "job": {"job": "other", "params": {"a": 1}},
    "wait": {"wait": {"for": "5m"}},
    "sensor": {"sensor": {"job": "ingest", "state": "ended", "within": "2h", "every": "30s", "timeout": "1d"}},
    "approval": {"approval": {"by": ["operator"], "timeout": "1h", "message": "go?"}},
    "external": {"external": {}},
    "dbt": {"dbt": {"models": ["sales"]}},
}


def test_the_steps_below_are_all_that_there_are() -> None:
    assert STEPS.keys() == {*KINDS, "dbt"}


@pytest.mark.parametrize("kind", STEPS)
def test_each_kind_of_step_is_read_and_comes_back_from_the_store(kind: str) -> None:
    job = job_of({"name": "job", "run": STEPS[kind]})
    (task,) = job.tasks
    assert task.kind == kind
    main = STEPS[kind][kind]
    beside = {option: value for option, value in STEPS[kind].items() if option != kind}
    has_main = kind in {"command", "python", "lambda", "sqs", "sns", "stateMachine", "job"}
    assert task.spec == ({"value": main, **beside} if has_main else main)
    assert decoded(document_of({"name": "job", "run": STEPS[kind]}), job) == job


def test_no_option_of_a_step_is_named_like_a_kind() -> None:
    for kind in KINDS.values():
        assert kind.main is None or not kind.fields.keys() & KINDS.keys()


def test_a_wait_is_one_of_a_duration_and_an_instant_or_a_template_of_one() -> None:
    for wait in ({"until": "2026-12-01T00:00:00Z"}, {"until": "${params.until}"}, {"for": "${params.for}"}):
        assert job_of({"name": "job", "run": {"wait": wait}}).tasks[0].spec == wait
    for wrong in ({}, {"for": "5m", "until": "2026-12-01T00:00:00Z"}, {"for": "soon"}, {"until": "5m"}):
        assert errors_of({"name": "job", "run": {"wait": wrong}})


def test_every_trigger_rule_of_the_interface_is_known() -> None:
    rules = (
        "all_success all_failed all_done one_success one_failed one_done none_failed "
        "none_failed_min_one_success none_skipped always"
    )
    assert rules.split() == list(TriggerRule)
    for rule in TriggerRule:
        job_of(one_task(when=str(rule)))


def test_times_as_yaml_gives_them_are_kept_as_text() -> None:
    given_at = datetime(2026, 1, 1, 1, tzinfo=timezone(timedelta(hours=1)))
    document = minimal(schedule={"every": "1h", "startAt": given_at}, params={"day": given_at.date()})
    schedule = job_of(document).schedule
    assert schedule is not None
    assert schedule.start_at == datetime(2026, 1, 1, tzinfo=UTC)
    kept = document_of(document)
    assert (kept["schedule"]["startAt"], kept["params"]["day"]) == ("2026-01-01T00:00:00Z", "2026-01-01")


# What is refused, and with which words.


@pytest.mark.parametrize(
    ("document", "path", "words"),
    [
        ([], "", "is an object"),
        ({"command": "a"}, "name", "required"),
        ({"name": "job"}, "tasks", "needs 'tasks'"),
        (minimal(run={"command": ["a"]}), "command", "exclude each other"),
        ({"name": "job", "tasks": []}, "tasks", "1 to 10000"),
        (minimal(shedule="@daily"), "shedule", "did you mean 'schedule'?"),
        (minimal(timezone="UTC"), "timezone", "write it as 'schedule.timezone'"),
        (minimal(Name="x"), "Name", "did you mean 'name'?"),
        (minimal(schedule="60 * * * *"), "schedule", "minute field"),
        (minimal(schedule={"cron": "*/0 * * * *"}), "schedule.cron", "minute field"),
        (minimal(schedule="0 0 31 2 *"), "schedule", "no such day"),
        (minimal(schedule="* " * 5000), "schedule", "256"),
        (minimal(schedule={"cron": 5}), "schedule.cron", "text"),
        (minimal(schedule=5), "schedule", "not an object"),
        (minimal(schedule={}), "schedule", "one of cron, every, at, after"),
        (minimal(schedule={"timezone": "UTC"}), "schedule", "one of cron"),
        (minimal(schedule={"cron": "@daily", "every": 5}), "schedule.every", "exclude each other"),
        (minimal(schedule={"cron": "@daily", "tz": "UTC"}), "schedule.tz", "no field 'tz'"),
        (minimal(schedule={"cron": "@daily", "timezone": "Berlin"}), "schedule.timezone", "Europe/Berlin"),
        (minimal(schedule={"cron": "@daily", "timezone": 1}), "schedule.timezone", "IANA"),
        (minimal(schedule={"cron": "@daily", "dst": {"gap": "Skip"}}), "schedule.dst.gap", "shift, skip"),
        (minimal(schedule={"every": "500ms"}), "schedule.every", "from 1s"),
        (minimal(schedule={"every": "1s500ms"}), "schedule.every", "whole seconds"),
        (minimal(schedule={"at": "2026-12-01T00:00:00"}), "schedule.at", "with a Z"),
        (minimal(schedule={"at": "2026-13-01T00:00:00Z"}), "schedule.at", "with a Z"),
        (minimal(schedule={"at": "9999-12-31T23:00:00-12:00"}), "schedule.at", "with a Z"),
        (minimal(schedule={"at": "9999-01-01T00:00:00Z"}), "schedule.at", "between"),
        (minimal(schedule={"at": 1790000000}), "schedule.at", "with a Z"),
        (minimal(schedule={"every": 5, "jitter": "2d"}), "schedule.jitter", "to 1d"),
        (minimal(schedule={"every": 5, "calendar": "a b"}), "schedule.calendar", "letters"),
        (minimal(schedule={"after": ["job"]}), "schedule.after", "itself"),
        (minimal(dependencies=["job"]), "dependencies", "itself"),
        (minimal(dependencies=[]), "dependencies", "0 items"),
        (minimal(dependencies=["a"], schedule={"after": ["b"]}), "dependencies", "short for"),
        (minimal(schedule={"after": ["a", "a"]}), "schedule.after[1]", "twice"),
        (minimal(schedule={"after": "a"}), "schedule.after", "neither a list of jobs nor an object"),
        (minimal(schedule={"after": {}}), "schedule.after", "one of 'all' and 'any'"),
        (minimal(schedule={"after": {"all": ["a"], "jobs": ["b"]}}), "schedule.after.jobs", "use all, any,"),
        (minimal(schedule={"after": {"all": ["a"], "any": ["b"]}}), "schedule.after.any", "exclude each other"),
        (minimal(schedule={"after": {"all": []}}), "schedule.after.all", "0 items"),
        (minimal(schedule={"after": {"any": ["a", "a"]}}), "schedule.after.any[1]", "twice"),
        (minimal(schedule={"after": {"any": ["job"]}}), "schedule.after", "itself"),
        (minimal(schedule={"after": {"all": ["a"], "window": "day"}}), "schedule.after.window", "latest, sameDay"),
        (minimal(schedule={"after": {"all": ["a"], "timezone": "UTC"}}), "schedule.after.timezone", "go together"),
        (
            minimal(schedule={"after": {"all": ["a"], "window": "sameDay", "timezone": "Berlin"}}),
            "schedule.after.timezone",
            "Europe/Berlin",
        ),
        (minimal(schedule={"cron": "@daily", "needs": "a"}), "schedule.needs", "an object with 'jobs'"),
        (minimal(schedule={"cron": "@daily", "needs": []}), "schedule.needs", "0 items"),
        (minimal(schedule={"cron": "@daily", "needs": ["a", "a"]}), "schedule.needs[1]", "twice"),
        (minimal(schedule={"cron": "@daily", "needs": {"window": "sameDay"}}), "schedule.needs.jobs", "required"),
        (minimal(schedule={"cron": "@daily", "needs": ["job"]}), "schedule.needs", "itself"),
        (minimal(schedule={"after": ["a"], "needs": ["b"]}), "schedule.needs", "goes with cron, every or at"),
        (
            minimal(schedule={"cron": "@daily", "needs": {"jobs": ["a"], "window": "latest"}}),
            "schedule.needs.window",
            "latestBefore, sameDay",
        ),
        (
            minimal(schedule={"cron": "@daily", "needs": {"jobs": ["a"], "timezone": "UTC"}}),
            "schedule.needs.timezone",
            "go together",
        ),
        (
            minimal(schedule={"cron": "@daily", "needs": {"jobs": ["a"], "timeout": "8d"}}),
            "schedule.needs.timeout",
            "7d",
        ),
        (minimal(needs=["a"]), "needs", "schedule.needs"),
        (minimal(schedule={"datasets": "sales"}), "schedule.datasets", "neither a list of datasets nor an object"),
        (minimal(schedule={"datasets": []}), "schedule.datasets", "0 items"),
        (minimal(schedule={"datasets": {"all": ["a"], "any": ["b"]}}), "schedule.datasets.any", "exclude each other"),
        (minimal(schedule={"datasets": {"any": ["a/b"]}}), "schedule.datasets.any[0]", "letters"),
        (
            minimal(schedule={"datasets": {"any": ["a"], "window": "latest"}}),
            "schedule.datasets.window",
            "use all, any",
        ),
        (minimal(publishes="sales"), "publishes", "not a list"),
        (minimal(publishes=["a", "a"]), "publishes[1]", "twice"),
        (minimal(datasets=["a"]), "datasets", "schedule.datasets"),
        (minimal(schedule={"events": [{"type": "a"}]}), "schedule.events[0].source", "required"),
        (minimal(catchup={"policy": "LATEST"}), "catchup.policy", "none, latest, all"),
        (minimal(catchup={"max": 10_001}), "catchup.max", "1 to 10000"),
        (minimal(catchup={"max": True}), "catchup.max", "whole number"),
        (minimal(catchup={"max": 1.0}), "catchup.max", "whole number"),
        (minimal(overlap="Allow"), "overlap", "allow, skip, queue, replace"),
        (minimal(overlap=["allow"]), "overlap", "allow, skip"),
        (minimal(startDeadline="0s"), "startDeadline", "from 1s"),
        (minimal(concurrency={"runs": 0}), "concurrency.runs", "1 to 500"),
        (minimal(concurrency={"pool": "a/b"}), "concurrency.pool", "letters"),
        (minimal(priority="urgent"), "priority", "high, normal, low"),
        (minimal(guarantee="exactly-once"), "guarantee", "at-most-once"),
        (minimal(retry=3), "retry", "not an object"),
        (minimal(retry={"attempts": 0}), "retry.attempts", "1 to 100"),
        (minimal(retry={"backoff": "linear"}), "retry.backoff", "fixed, exponential, list"),
        (minimal(retry={"backoff": "list"}), "retry.delays", "go together"),
        (minimal(retry={"backoff": "fixed", "delays": [1]}), "retry.delays", "go together"),
        (minimal(retry={"delay": "8d"}), "retry.delay", "to 7d"),
        (minimal(retries=-1), "retries", "0 to 99"),
        (minimal(retries=1, retry={"attempts": 2}), "retries", "exclude each other"),
        (minimal(timeout=0), "timeout", "from 1ms"),
        (minimal(timeout=True), "timeout", "not a duration"),
        (minimal(timeout="an hour"), "timeout", "1h30m"),
        (minimal(deadline=420), "deadline", "07:00"),
        (minimal(deadline="24:00"), "deadline", "07:00"),
        (minimal(pauseAfterFailures=0), "pauseAfterFailures", "1 to 1000"),
        (minimal(notify=[{"on": ["fail"], "to": "sns:a"}]), "notify[0].on[0]", "deadlineMissed"),
        (minimal(notify=[{"on": ["failed"], "to": "alerts"}]), "notify[0].to", "sns:alerts"),
        (minimal(params=[]), "params", "object"),
        (minimal(params={"a": "x" * 32_768}), "params", "at most 32768"),
        (minimal(tags=["a"] * 2), "tags[1]", "twice"),
        (minimal(tags=[str(n) for n in range(51)]), "tags", "0 to 50"),
        (minimal(tags="finance"), "tags", "not a list"),
        (minimal(description="x" * 4_097), "description", "4096"),
        ({"name": "job", "command": ""}, "command", "empty"),
        ({"name": "job", "command": "echo 'a"}, "command", "No closing quotation"),
        ({"name": "job", "command": 5}, "command", "not a list"),
        ({"name": "job", "command": ["a", 5]}, "command[1]", "not text"),
        ({"name": "job", "run": "ls"}, "run", "an object"),
        ({"name": "job", "run": {}}, "run", "one of command, python"),
        ({"name": "job", "run": {"comand": []}}, "run", "did you mean 'command'?"),
        ({"name": "job", "run": {"command": ["a"], "lambda": "b"}}, "run", "one kind"),
        ({"name": "job", "run": {"command": ["a"], "evn": {}}}, "run.evn", "did you mean 'env'?"),
        ({"name": "job", "run": {"command": ["a"], "env": {"A": 1}}}, "run.env.A", "not text"),
        ({"name": "job", "run": {"command": ["a"], "env": {"1A": ""}}}, "run.env.1A", "variable"),
        ({"name": "job", "run": {"command": ["a"], "shell": True}}, "run.command", "not text"),
        ({"name": "job", "run": {"command": ["a"], "shell": 1}}, "run.shell", "neither true nor false"),
        ({"name": "job", "run": {"container": {}}}, "run.container.image", "required"),
        ({"name": "job", "run": {"http": {"url": "ftp://a"}}}, "run.http.url", "https://"),
        ({"name": "job", "run": {"http": {"url": "http://a", "method": "get"}}}, "run.http.method", "GET"),
        ({"name": "job", "run": {"http": None}}, "run.http", "required"),
        ({"name": "job", "run": {"lambda": None}}, "run.lambda", "required"),
        ({"name": "job", "run": {"spark": {}}}, "run", "no kind of step 'spark'"),
        (one_task(id="a#b"), "tasks[0].id", "letters"),
        (one_task(when="all_succeeded"), "tasks[0].when", "all_success"),
        (one_task(map={"over": "${params.list}", "max": 10**9}), "tasks[0].map.max", "1 to 10000"),
        (one_task(map={"max": 5}), "tasks[0].map.over", "required"),
        (one_task(retry={"delay": "5 m"}), "tasks[0].retry.delay", "not a duration"),
        (one_task(run=None), "tasks[0].run", "needs one of"),
        (one_task(labels=["a b"]), "tasks[0].labels[0]", "letters"),
        (one_task(**{"if": ""}), "tasks[0].if", "1 to 1024"),
        ({"name": "job", "tasks": ["a"]}, "tasks[0]", "not an object"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_mistake_is_refused_at_its_path_with_what_would_be_right(document: Any, path: str, words: str) -> None:
    errors = errors_of(document)
    assert list(errors) == [path]
    assert words in errors[path]


def test_all_mistakes_are_refused_at_once() -> None:
    document = {
        "name": "a/b",
        "schedule": {"cron": "60 * * * *", "timezone": "Nowhere", "jitter": -1},
        "retries": "3",
        "timeout": math.nan,
        "tasks": [
            {"id": "a", "run": {"command": ["x"]}, "retry": {"delay": "x"}},
            {"id": "b", "needs": ["a", "z"], "run": {"sqs": ""}, "colour": "red"},
        ],
    }
    assert errors_of(document).keys() == {
        "name",
        "schedule.cron",
        "schedule.timezone",
        "schedule.jitter",
        "retries",
        "timeout",
        "tasks[0].retry.delay",
        "tasks[1].run.sqs",
        "tasks[1].colour",
        "tasks[1].needs[1]",
    }


def test_a_refusal_lists_only_so_many_errors() -> None:
    tasks = [{"id": f"t{n}", "needs": ["z"], "wrong": 1} for n in range(1000)]
    with pytest.raises(InvalidInput, match="more than 100 errors") as refused:
        job_of({"name": "job", "tasks": tasks})
    assert len(refused.value.errors) == ERRORS_MAX + 1


@pytest.mark.parametrize(
    "name", ["", "a" * 129, "a#b", "a|b", "a/b", "a\0b", "a\u2028b", "-a", ".a", "ä", "a\n", " a", 5, True, ["a"]]
)
def test_no_name_can_hold_a_separator(name: Any) -> None:
    assert errors_of(minimal(), name=name).keys() == {"name"}
    assert "tasks[0].id" in errors_of(one_task(id=name))


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (math.nan, "nan is not a number"),
        (math.inf, "inf is not a number"),
        ("a\0", "U+0000"),
        ("\ud800", "surrogate"),
        (2**63, "too large"),
        (b"bytes", "bytes is nothing that JSON has"),
        ({1, 2}, "set is nothing that JSON has"),
        ({"\ud800": 1}, "surrogate"),
        ({True: 1}, "put it in quotes"),
    ],
    ids=repr,
)
def test_what_json_does_not_have_is_refused_wherever_it_is(value: Any, words: str) -> None:
    errors = errors_of(minimal(), params={"a": [value]})
    assert list(errors) == ["params.a[0]"]
    assert words in errors["params.a[0]"]
    with pytest.raises(InvalidInput, match=re.escape(words)):
        document_of(minimal(params={"a": value}))


def nested(levels: int) -> Any:
    inner: Any = 1
    for _ in range(levels):
        inner = [inner]
    return inner


def test_nesting_is_bounded() -> None:
    job_of(minimal(params={"a": nested(DEPTH_MAX - 2)}))
    for levels in (DEPTH_MAX - 1, 100_000):
        assert "32 levels" in next(iter(errors_of(minimal(), params={"a": nested(levels)}).values()))


def test_size_is_bounded_also_where_aliases_make_a_small_file_endless() -> None:
    bomb: Any = ["boom"] * 10
    for _ in range(20):
        bomb = [bomb] * 10
    loop: list[Any] = []
    loop.append(loop)
    wide = {"approval": {"a": "ä" * (DOCUMENT_BYTES_MAX // 2)}}
    assert "bytes" in errors_of(minimal(), params={"a": bomb})[""]
    assert "32 levels" in next(iter(errors_of(minimal(), params={"a": loop}).values()))
    assert "bytes" in errors_of({"name": "job", "run": wide})[""]


# The graph.


def graph(edges: Mapping[str, list[str]]) -> dict[str, Any]:
    tasks = [{"id": name, "needs": needs, "run": {"command": ["true"]}} for name, needs in edges.items()]
    return {"name": "job", "tasks": tasks}


def test_a_cycle_is_shown() -> None:
    errors = errors_of(graph({"start": [], "a": ["start", "c"], "b": ["a"], "c": ["b"], "end": ["c"]}))
    assert errors == {"tasks[1].needs": "These tasks need each other: a → c → b → a."}


def test_a_long_cycle_is_shown_shortened() -> None:
    edges = {f"t{n}": [f"t{(n + 1) % 5000}"] for n in range(5000)}
    (message,) = errors_of(graph(edges)).values()
    assert "(5000 tasks)" in message
    assert len(message) < 300


def test_a_task_cannot_need_itself_or_one_that_is_not_there() -> None:
    errors = errors_of(graph({"extract": [], "load": ["load", "extrat"]}))
    assert errors["tasks[1].needs[0]"] == "Task 'load' cannot need itself."
    assert errors["tasks[1].needs[1]"] == "There is no task 'extrat': did you mean 'extract'?"
    assert len(errors) == 2


def test_ids_and_needs_are_unique() -> None:
    task = {"id": "a", "run": {"command": ["true"]}}
    assert errors_of({"name": "job", "tasks": [task, task]}).keys() == {"tasks[1].id"}
    assert errors_of(graph({"a": [], "b": ["a", "a"]})).keys() == {"tasks[1].needs[1]"}


@pytest.mark.parametrize(
    "needs",
    [
        lambda n: [f"t{n - 1}"] if n else [],
        lambda n: [f"t{n + 1}"] if n < TASKS_MAX - 1 else [],
        lambda n: ["t0"] if n else [],
    ],
    ids=["deep", "deep, last first", "wide"],
)
def test_ten_thousand_tasks_are_legal_deep_or_wide(needs: Any) -> None:
    document = graph({f"t{n}": needs(n) for n in range(TASKS_MAX)})
    job = job_of(document)
    assert len(job.tasks) == TASKS_MAX
    assert decoded(document_of(document), job) == job


def test_one_task_more_is_not() -> None:
    assert errors_of(graph({f"t{n}": [] for n in range(TASKS_MAX + 1)})).keys() == {"tasks"}


@given(st.data())
def test_a_graph_is_refused_exactly_if_it_has_a_cycle(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 7))
    pairs = st.tuples(st.integers(0, count - 1), st.integers(0, count - 1)).filter(lambda pair: pair[0] != pair[1])
    edges = data.draw(st.sets(pairs, max_size=12))
    reach = set(edges)
    for _ in range(count):
        reach |= {(a, d) for a, b in reach for c, d in reach if b == c}
    document = graph({f"t{n}": [f"t{b}" for a, b in sorted(edges) if a == n] for n in range(count)})
    if not any((n, n) in reach for n in range(count)):
        assert len(job_of(document).tasks) == count
        return
    (message,) = errors_of(document).values()
    walk = [int(step) for step in re.findall(r"t(\d+)", message)]
    assert walk[0] == walk[-1]
    assert all(edge in edges for edge in pairwise(walk))


# Versions.


def version_of(document: Any, job: Job | None) -> JobVersion:
    return JobVersion(KEY, 3, NOW, "ada", document, job)


def decoded(document: Any, job: Job) -> Job | None:
    stored = json.loads(json.dumps(encode_version(version_of(document, job))))
    return decode_version(KEY, stored).job


@pytest.mark.parametrize("document", [SHORT, LONG, minimal()], ids=["short", "long", "no schedule"])
def test_a_version_comes_back_from_the_store_as_it_was(document: Any) -> None:
    version = version_of(document_of(document), job_of(document))
    assert decode_version(KEY, json.loads(json.dumps(encode_version(version)))) == version


def test_a_tombstone_comes_back_too() -> None:
    tombstone = version_of(None, None)
    assert decode_version(KEY, json.loads(json.dumps(encode_version(tombstone)))) == tombstone


def test_a_stored_version_keeps_the_phase_of_its_rate_and_of_its_hash() -> None:
    for schedule in ("rate(7 minutes)", "H H * * *"):
        document = minimal(schedule=schedule)
        later = parse(document, namespace="elsewhere", now=NOW + timedelta(minutes=1))
        job = job_of(document)
        assert job != later
        assert decoded(document_of(document), job) == job


def test_an_operator_that_is_gone_does_not_make_old_versions_unreadable() -> None:
    document = {"name": "job", "run": STEPS["dbt"]}
    assert decoded(document_of(document), job_of(document)) == job_of(document)
    with pytest.raises(InvalidInput):
        parse(document, namespace="default", now=NOW)


def test_reading_a_stored_version_never_loads_croniter() -> None:
    stored = json.dumps(encode_version(version_of(document_of(LONG), job_of(LONG))))
    script = f"""
import json, sys
from sweephand.domain.definition import decode_version
from sweephand.domain.ids import JobKey
version = decode_version(JobKey.of("default/daily-report"), json.loads({stored!r}))
assert version.job.schedule.next_after(version.created_at) is not None
sys.exit("croniter" in sys.modules)
"""
    subprocess.run([sys.executable, "-c", script], check=True)


text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
names = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,8}", fullmatch=True)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=8,
)
durations = st.integers(1, 86_400) | st.sampled_from(["90s", "5m", "1h30m", "1d"])
schedules = st.sampled_from(
    [
        "*/5 * * * *",
        "rate(2 hours)",
        "cron(0 6 ? * MON-FRI *)",
        {"cron": "H 2 * * *", "timezone": "Europe/Berlin", "dst": {"fold": "both"}},
        {"every": "5m", "startAt": "2026-01-01T00:00:00Z", "endAt": "2027-01-01T00:00:00Z"},
        {"at": "2026-12-01T00:00:00Z", "jitter": "30s"},
        {"after": ["other"]},
    ]
)
retries = st.fixed_dictionaries(
    {}, optional={"attempts": st.integers(1, 100), "delay": durations, "on": st.lists(names, unique=True)}
)
steps = st.sampled_from(list(STEPS.values()))
documents = st.fixed_dictionaries(
    {"name": names},
    optional={
        "description": text,
        "schedule": schedules,
        "catchup": st.sampled_from(["none", "all", {"policy": "all", "max": 3}, {"window": "1h"}]),
        "overlap": st.sampled_from(list(map(str, Overlap))),
        "retry": retries,
        "timeout": durations,
        "params": st.dictionaries(text, json_values, max_size=3),
        "tags": st.lists(names, max_size=3, unique=True),
        "deadline": st.just("07:00"),
    },
).flatmap(
    lambda document: st.one_of(
        st.builds(lambda run: {**document, "run": run}, steps),
        st.builds(lambda line: {**document, "command": line}, st.just("python 'a b' c") | st.lists(text, min_size=1)),
        st.builds(
            lambda runs: {**document, "tasks": [{"id": f"t{n}", "run": run} for n, run in enumerate(runs)]},
            st.lists(steps, min_size=1, max_size=4),
        ),
    )
)


@given(documents)
def test_writing_the_short_forms_out_changes_nothing_and_the_store_gives_back_the_same_job(
    document: dict[str, Any],
) -> None:
    job = job_of(document)
    written = document_of(document)
    assert job_of(written) == job
    assert document_of(written) == written
    assert decoded(written, job) == job


mistakes = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.binary(max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
FIELDS = (
    "name schedule catchup overlap concurrency retry retries timeout params tags tasks run command dependencies "
    "notify deadline startDeadline after cron every at timezone dst blackouts events id needs map labels when if "
    "env secrets lambda http container wait url image delays on to from policy"
)
fields = st.sampled_from(FIELDS.split())
wild = st.recursive(
    mistakes, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(fields, inner, max_size=5), max_leaves=20
)


def refusal_of(call: Callable[[], object]) -> InvalidInput | None:
    try:
        call()
    except InvalidInput as refused:
        return refused
    return None


@given(st.dictionaries(fields, wild, max_size=8))
def test_whatever_is_sent_is_a_job_or_a_refusal_with_paths(document: dict[str, Any]) -> None:
    refused = refusal_of(lambda: job_of(document))
    unwritable = refusal_of(lambda: document_of(document))
    assert refused or not unwritable
    for path, message in refused.errors if refused else ():
        assert isinstance(path, str)
        assert message.endswith((".", "?"))
