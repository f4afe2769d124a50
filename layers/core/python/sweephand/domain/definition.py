"""A job's definition as people write it, checked and turned into a `Job`; and the stored form of its versions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from functools import partial
from itertools import islice
from typing import Any, Final

from sweephand.domain.fields import (
    ERRORS_MAX,
    Fields,
    Reader,
    choice,
    duration,
    listed,
    name,
    object_of,
    one_of,
    refusal,
    text,
    whole,
)
from sweephand.domain.graph import graph_errors, rule_errors
from sweephand.domain.ids import JobKey
from sweephand.domain.job import (
    TIMEOUT_DEFAULT,
    Catchup,
    CatchupPolicy,
    Concurrency,
    Guarantee,
    Job,
    JobVersion,
    OnFailure,
    Overlap,
    Priority,
    Task,
)
from sweephand.domain.kinds import NOTHING_INSTALLED, Installed, Step, read_step, read_stored_step
from sweephand.domain.limits import CATCHUP_MAX, HOLDERS_MAX, TASKS_MAX
from sweephand.domain.occasions import DATASETS, JOB_NAMES, read_occasions
from sweephand.domain.plain import plain
from sweephand.domain.references import reference_errors
from sweephand.domain.retry import Retry
from sweephand.domain.schedule import Schedule
from sweephand.domain.shorthand import MAIN_TASK, written_out
from sweephand.domain.task_definition import (
    PRIORITY,
    TAGS_MAX,
    TIMEOUT,
    read_cache,
    read_retry,
    read_step_of,
    read_task,
)
from sweephand.domain.timetable import read_schedule
from sweephand.errors import InvalidInput

__all__ = ["STEP_FIELDS", "TEMPLATE_FIELDS", "decode_version", "document_of", "encode_version", "parse"]

DOCUMENT_BYTES_MAX: Final = 262_144
TASK_BYTES: Final = 256
"""What every task adds to the size that a document may have, so that 10,000 small ones fit."""
DESCRIPTION_CHARS_MAX: Final = 4_096
PARAMS_BYTES_MAX: Final = 32_768
NOTICES_MAX: Final = 20
FAILURES_MAX: Final = 1_000


STEP_FIELDS: Final = ("tasks", "run", "command")
"""Of these, a job has one."""
TEMPLATE_FIELDS: Final = (
    "description",
    "schedule",
    "dependencies",
    "catchup",
    "overlap",
    "startDeadline",
    "concurrency",
    "priority",
    "guarantee",
    "retry",
    "retries",
    "timeout",
    "runTimeout",
    "onFailure",
    "deadline",
    "pauseAfterFailures",
    "cache",
    "publishes",
    "notify",
    "params",
    "tags",
    *STEP_FIELDS,
)
"""What jobs may have in common: every field of a definition but its name."""


_CATCHUP: Final = Catchup()
_CONCURRENCY: Final = Concurrency()
_RETRY: Final = Retry()
_ELSEWHERE: Final = {
    "cron": "schedule.cron",
    "every": "schedule.every",
    "at": "schedule.at",
    "timezone": "schedule.timezone",
    "startAt": "schedule.startAt",
    "endAt": "schedule.endAt",
    "jitter": "schedule.jitter",
    "after": "schedule.after",
    "datasets": "schedule.datasets",
    "events": "schedule.events",
    "needs": "schedule.needs",
    "attempts": "retry.attempts",
    "pool": "concurrency.pool",
}

_AT_LEAST_A_SECOND: Final = duration(timedelta(seconds=1))
_DESCRIPTION: Final = text(DESCRIPTION_CHARS_MAX, least=0)
_OVERLAP: Final = choice(Overlap)
_ON_FAILURE: Final = choice(OnFailure)
_GUARANTEE: Final = choice(Guarantee)
_CATCHUP_POLICY: Final = choice(CatchupPolicy)
_CATCHUP_MOST: Final = whole(1, CATCHUP_MAX)
_HOLDERS: Final = whole(1, HOLDERS_MAX)
_FAILURES: Final = whole(1, FAILURES_MAX)
_PARAMS: Final = object_of(PARAMS_BYTES_MAX)
_TAGS: Final = listed(text(128), TAGS_MAX, distinct=True)
_DEADLINE: Final = text(
    5, pattern=r"([01][0-9]|2[0-3]):[0-5][0-9]", right='a deadline is a time of day such as "07:00", in quotes'
)
_NOTICE_EVENTS: Final = listed(
    one_of("started", "succeeded", "failed", "retrying", "cancelled", "skipped", "paused", "deadlineMissed"),
    10,
    least=1,
    distinct=True,
)
_NOTICE_TARGET: Final = text(
    2_048, pattern=r"[a-z][a-z0-9+.-]*:[^\x00-\x20\x7f]+", right="a target is a kind and an address, such as sns:alerts"
)


def parse(
    document: Mapping[str, Any], *, namespace: str, now: datetime, operators: Installed = NOTHING_INSTALLED
) -> Job:
    """The job that a document, long or short, defines, or one refusal that lists all its errors."""
    if (count := _task_count(document)) > TASKS_MAX:
        # Before its size is looked at: that there are too many is what helps.
        raise InvalidInput(f"The list has {count} items: at most {TASKS_MAX} are right.", "tasks")
    given, left_out = plain(document, bytes_max=_bytes_max(document))
    compiling = partial(read_schedule, namespace=namespace, job=given.get("name"), now=now)
    errors = list(left_out)
    job = None
    try:
        job = _job(given, compiling, partial(read_step, operators=operators))
    except InvalidInput as refused:
        errors += refused.errors
    errors += islice(_errors_between(given), ERRORS_MAX + 1)
    if errors or job is None:
        # A value that was left out is null now: that it is also missing is no news.
        unreadable = {path for path, _ in left_out}
        raise refusal([*left_out, *(one for one in errors if one[0] not in unreadable)])
    return job


def _errors_between(given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What is wrong between tasks, each of which may be right in itself."""
    tasks = given.get("tasks")
    if not isinstance(tasks, list):
        yield from reference_errors([given], lambda _n: "")
    elif len(tasks) <= TASKS_MAX:
        found = False
        for error in graph_errors(tasks, "tasks"):
            found = True
            yield error
        if not found:
            yield from reference_errors(tasks, lambda n: f"tasks[{n}]")
            yield from rule_errors(tasks, "tasks", is_stopping=given.get("onFailure") == OnFailure.STOP)


def document_of(document: Mapping[str, Any]) -> dict[str, Any]:
    """The document as a version keeps it: what the user gave, as JSON has it, with the short forms written out.

    Parse the user's own document, so that errors name the user's own fields; both mean the same job.
    """
    given, left_out = plain(document, bytes_max=_bytes_max(document))
    if left_out:
        raise refusal(left_out)
    return written_out(given)


def encode_version(version: JobVersion) -> dict[str, Any]:
    """JSON-able, for the stores; the compiled schedule spares its readers the parser of expressions."""
    stored: dict[str, Any] = {
        "number": version.number,
        "createdAt": version.created_at.isoformat(),
        "createdBy": version.created_by,
        "document": version.document,
    }
    if version.job is not None and version.job.schedule is not None:
        stored["schedule"] = version.job.schedule.encode()
    return stored


def decode_version(key: JobKey, stored: Mapping[str, Any]) -> JobVersion:
    """The version that `encode_version` stored; its document was checked then."""
    document = stored["document"]
    job = None
    if document is not None:
        compiled = stored.get("schedule")
        schedule = Schedule.decode(compiled) if compiled is not None else None
        job = _job(document, lambda _value, _path: schedule, read_stored_step, is_stored=True)
    return JobVersion(
        key,
        int(stored["number"]),
        datetime.fromisoformat(stored["createdAt"]),
        stored["createdBy"],
        document,
        job,
    )


def _bytes_max(document: Any) -> int:
    return DOCUMENT_BYTES_MAX + TASK_BYTES * min(_task_count(document), TASKS_MAX)


def _task_count(document: Any) -> int:
    tasks = document.get("tasks") if isinstance(document, Mapping) else None
    return len(tasks) if isinstance(tasks, list | tuple) else 0


# The job.


def _job(
    document: Mapping[str, Any], schedule: Reader[Schedule | None], step: Reader[Step], *, is_stored: bool = False
) -> Job:
    fields = Fields(document, "")
    occasions = read_occasions(document)
    job = Job(
        name=fields.get("name", name, "", required=True),
        schedule=fields.get("schedule", schedule, None),
        after=occasions.after,
        after_rule=occasions.after_rule,
        datasets=occasions.datasets,
        datasets_quantity=occasions.datasets_quantity,
        events=occasions.events,
        needs=occasions.needs,
        publishes=fields.get("publishes", DATASETS, ()),
        description=fields.get("description", _DESCRIPTION, ""),
        catchup=fields.get("catchup", _catchup, _CATCHUP),
        overlap=fields.get("overlap", _OVERLAP, Overlap.ALLOW),
        start_deadline=fields.get("startDeadline", _AT_LEAST_A_SECOND, None),
        concurrency=fields.get("concurrency", _concurrency, _CONCURRENCY),
        priority=fields.get("priority", PRIORITY, Priority.NORMAL),
        guarantee=fields.get("guarantee", _GUARANTEE, Guarantee.AT_LEAST_ONCE),
        retry=read_retry(fields) or _RETRY,
        timeout=fields.get("timeout", TIMEOUT, TIMEOUT_DEFAULT),
        run_timeout=fields.get("runTimeout", TIMEOUT, None),
        on_failure=fields.get("onFailure", _ON_FAILURE, OnFailure.FINISH),
        pause_after_failures=fields.get("pauseAfterFailures", _FAILURES, None),
        cache=fields.get("cache", read_cache, None),
        params=fields.get("params", _PARAMS, {}),
        tags=fields.get("tags", _TAGS, ()),
        tasks=_tasks_of(fields, step, is_stored=is_stored),
    )
    fields.get("deadline", _DEADLINE, None)
    fields.get("notify", _NOTICES, None)
    if fields.get("dependencies", JOB_NAMES, None) is not None:
        _check_dependencies(fields, document, job.name)
    fields.done(_ELSEWHERE)
    return job


def _check_dependencies(fields: Fields, document: Mapping[str, Any], job: str) -> None:
    schedule = document.get("schedule")
    if isinstance(schedule, Mapping) and schedule.get("after") is not None:
        fields.refuse("dependencies", "'dependencies' is short for 'schedule.after': give one of them.")
    if job in document["dependencies"]:
        fields.refuse("dependencies", "A job cannot come after itself.")


def _tasks_of(fields: Fields, step: Reader[Step], *, is_stored: bool) -> tuple[Task, ...]:
    tasks = fields.get("tasks", listed(partial(read_task, step=step, is_stored=is_stored), TASKS_MAX, least=1), ())
    single = read_step_of(fields, step)
    fields.at_most_one("tasks", "run", "command")
    if not fields.given("tasks", "run", "command"):
        fields.refuse("tasks", "A job needs 'tasks', or 'run' or 'command' for a single one.")
    return tasks if single is None else (Task(MAIN_TASK, *single),)


# Its policies.


def _catchup(value: Any, path: str) -> Catchup:
    if isinstance(value, str):
        return Catchup(_CATCHUP_POLICY(value, path))
    fields = Fields(value, path)
    catchup = Catchup(
        policy=fields.get("policy", _CATCHUP_POLICY, _CATCHUP.policy),
        max=fields.get("max", _CATCHUP_MOST, _CATCHUP.max),
        window=fields.get("window", _AT_LEAST_A_SECOND, _CATCHUP.window),
    )
    fields.done()
    return catchup


def _concurrency(value: Any, path: str) -> Concurrency:
    fields = Fields(value, path)
    concurrency = Concurrency(
        runs=fields.get("runs", _HOLDERS, None),
        pool=fields.get("pool", name, None),
        slots=fields.get("slots", _HOLDERS, 1),
    )
    fields.done()
    return concurrency


def _notice(value: Any, path: str) -> None:
    fields = Fields(value, path)
    fields.get("on", _NOTICE_EVENTS, (), required=True)
    fields.get("to", _NOTICE_TARGET, "", required=True)
    fields.done()


_NOTICES: Final = listed(_notice, NOTICES_MAX)
