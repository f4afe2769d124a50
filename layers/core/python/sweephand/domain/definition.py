"""A job's definition as people write it, checked and turned into a `Job`; and the stored form of its versions."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum
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
from sweephand.domain.graph import graph_errors
from sweephand.domain.ids import JobKey
from sweephand.domain.job import (
    A_MOMENT,
    Catchup,
    CatchupPolicy,
    Concurrency,
    Guarantee,
    Job,
    JobVersion,
    Overlap,
    Priority,
    Task,
)
from sweephand.domain.kinds import Step, argv, read_step, read_stored_step
from sweephand.domain.limits import CATCHUP_MAX, HOLDERS_MAX
from sweephand.domain.plain import plain
from sweephand.domain.retry import Backoff, Retry
from sweephand.domain.schedule import Schedule
from sweephand.domain.shorthand import MAIN_TASK, written_out
from sweephand.domain.timetable import JOB_NAMES, read_occasions, read_schedule
from sweephand.errors import InvalidInput

__all__ = ["TEMPLATE_FIELDS", "TriggerRule", "decode_version", "document_of", "encode_version", "parse"]

DOCUMENT_BYTES_MAX: Final = 262_144
TASK_BYTES: Final = 256
"""What every task adds to the size that a document may have, so that 10,000 small ones fit."""
TASKS_MAX: Final = 10_000
MAPPED_MAX: Final = 10_000
ATTEMPTS_MAX: Final = 100
DELAY_MAX: Final = timedelta(days=7)
DESCRIPTION_CHARS_MAX: Final = 4_096
PARAMS_BYTES_MAX: Final = 32_768
TAGS_MAX: Final = 50
NOTICES_MAX: Final = 20
FAILURES_MAX: Final = 1_000


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
    "deadline",
    "pauseAfterFailures",
    "notify",
    "params",
    "tags",
    "tasks",
    "run",
    "command",
)
"""What jobs may have in common: every field of a definition but its name."""


class TriggerRule(StrEnum):
    """When a task starts, by how the tasks that it needs ended; names and results are Airflow's."""

    ALL_SUCCESS = "all_success"
    ALL_FAILED = "all_failed"
    ALL_DONE = "all_done"
    ONE_SUCCESS = "one_success"
    ONE_FAILED = "one_failed"
    ONE_DONE = "one_done"
    NONE_FAILED = "none_failed"
    NONE_FAILED_MIN_ONE_SUCCESS = "none_failed_min_one_success"
    NONE_SKIPPED = "none_skipped"
    ALWAYS = "always"


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
    "attempts": "retry.attempts",
    "pool": "concurrency.pool",
}

_AT_LEAST_A_SECOND: Final = duration(timedelta(seconds=1))
_TIMEOUT: Final = duration(A_MOMENT)
_DELAY: Final = duration(most=DELAY_MAX)
_DELAYS: Final = listed(_DELAY, ATTEMPTS_MAX, least=1)
_DESCRIPTION: Final = text(DESCRIPTION_CHARS_MAX, least=0)
_OVERLAP: Final = choice(Overlap)
_PRIORITY: Final = choice(Priority)
_GUARANTEE: Final = choice(Guarantee)
_BACKOFF: Final = choice(Backoff)
_CATCHUP_POLICY: Final = choice(CatchupPolicy)
_WHEN: Final = choice(TriggerRule)
_CATCHUP_MOST: Final = whole(1, CATCHUP_MAX)
_HOLDERS: Final = whole(1, HOLDERS_MAX)
_ATTEMPTS: Final = whole(1, ATTEMPTS_MAX)
_RETRIES: Final = whole(0, ATTEMPTS_MAX - 1)
_FAILURES: Final = whole(1, FAILURES_MAX)
_FAILURE_NAMES: Final = listed(text(256), 50, distinct=True)
_PARAMS: Final = object_of(PARAMS_BYTES_MAX)
_TAGS: Final = listed(text(128), TAGS_MAX, distinct=True)
_LABELS: Final = listed(name, TAGS_MAX, distinct=True)
_NEEDS: Final = listed(name, TASKS_MAX, distinct=True)
_CONDITION: Final = text(1_024)
_MAP_OVER: Final = text(1_024)
_MAP_MAX: Final = whole(1, MAPPED_MAX)
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
    document: Mapping[str, Any], *, namespace: str, now: datetime, operators: frozenset[str] = frozenset()
) -> Job:
    """The job that a document, long or short, defines, or one refusal that lists all its errors."""
    given, left_out = plain(document, bytes_max=_bytes_max(document))
    compiling = partial(read_schedule, namespace=namespace, job=given.get("name"), now=now)
    errors = list(left_out)
    job = None
    try:
        job = _job(given, compiling, partial(read_step, operators=operators))
    except InvalidInput as refused:
        errors += refused.errors
    tasks = given.get("tasks")
    if isinstance(tasks, list) and len(tasks) <= TASKS_MAX:
        errors += islice(graph_errors(tasks, "tasks"), ERRORS_MAX + 1)
    if errors or job is None:
        # A value that was left out is null now: that it is also missing is no news.
        unreadable = {path for path, _ in left_out}
        raise refusal([*left_out, *(one for one in errors if one[0] not in unreadable)])
    return job


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
        job = _job(document, lambda _value, _path: schedule, read_stored_step)
    return JobVersion(
        key,
        int(stored["number"]),
        datetime.fromisoformat(stored["createdAt"]),
        stored["createdBy"],
        document,
        job,
    )


def _bytes_max(document: Any) -> int:
    tasks = document.get("tasks") if isinstance(document, Mapping) else None
    count = len(tasks) if isinstance(tasks, list | tuple) else 0
    return DOCUMENT_BYTES_MAX + TASK_BYTES * min(count, TASKS_MAX)


# The job.


def _job(document: Mapping[str, Any], schedule: Reader[Schedule | None], step: Reader[Step]) -> Job:
    fields = Fields(document, "")
    after, events = read_occasions(document)
    job = Job(
        name=fields.get("name", name, "", required=True),
        schedule=fields.get("schedule", schedule, None),
        after=after,
        events=events,
        description=fields.get("description", _DESCRIPTION, ""),
        catchup=fields.get("catchup", _catchup, _CATCHUP),
        overlap=fields.get("overlap", _OVERLAP, Overlap.ALLOW),
        start_deadline=fields.get("startDeadline", _AT_LEAST_A_SECOND, None),
        concurrency=fields.get("concurrency", _concurrency, _CONCURRENCY),
        priority=fields.get("priority", _PRIORITY, Priority.NORMAL),
        guarantee=fields.get("guarantee", _GUARANTEE, Guarantee.AT_LEAST_ONCE),
        retry=_retry_of(fields) or _RETRY,
        timeout=fields.get("timeout", _TIMEOUT, timedelta(hours=1)),
        run_timeout=fields.get("runTimeout", _TIMEOUT, None),
        pause_after_failures=fields.get("pauseAfterFailures", _FAILURES, None),
        params=fields.get("params", _PARAMS, {}),
        tags=fields.get("tags", _TAGS, ()),
        tasks=_tasks_of(fields, step),
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


def _tasks_of(fields: Fields, step: Reader[Step]) -> tuple[Task, ...]:
    tasks = fields.get("tasks", listed(partial(_task, step=step), TASKS_MAX, least=1), ())
    single = _step_of(fields, step)
    fields.at_most_one("tasks", "run", "command")
    if not fields.given("tasks", "run", "command"):
        fields.refuse("tasks", "A job needs 'tasks', or 'run' or 'command' for a single one.")
    return tasks if single is None else (Task(MAIN_TASK, *single),)


def _task(value: Any, path: str, *, step: Reader[Step]) -> Task:
    fields = Fields(value, path)
    kind, spec = _step_of(fields, step) or ("", {})
    if len(fields.given("run", "command")) != 1:
        fields.refuse("run", "A task needs one of 'run' and 'command'.")
    task = Task(
        id=fields.get("id", name, "", required=True),
        kind=kind,
        spec=spec,
        needs=fields.get("needs", _NEEDS, ()),
        retry=_retry_of(fields),
        timeout=fields.get("timeout", _TIMEOUT, None),
    )
    fields.get("when", _WHEN, None)
    fields.get("if", _CONDITION, None)
    fields.get("map", _map, None)
    fields.get("pool", name, None)
    fields.get("priority", _PRIORITY, None)
    fields.get("labels", _LABELS, None)
    fields.done()
    return task


def _step_of(fields: Fields, step: Reader[Step]) -> Step | None:
    """What `run` says, or `command`, which is short for it."""
    words = fields.get("command", argv, None)
    return fields.get("run", step, None) or (words and ("command", {"value": list(words)})) or None


def _map(value: Any, path: str) -> None:
    fields = Fields(value, path)
    fields.get("over", _MAP_OVER, "", required=True)
    fields.get("max", _MAP_MAX, None)
    fields.done()


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


def _retry_of(fields: Fields) -> Retry | None:
    retry = fields.get("retry", _retry, None)
    retries = fields.get("retries", _RETRIES, None)
    fields.at_most_one("retry", "retries")
    return retry if retries is None else Retry(attempts=retries + 1)


def _retry(value: Any, path: str) -> Retry:
    fields = Fields(value, path)
    delays = fields.get("delays", _DELAYS, ())
    backoff = fields.get("backoff", _BACKOFF, Backoff.LIST if delays else _RETRY.backoff)
    delay = fields.get("delay", _DELAY, _RETRY.delay)
    delay_max = fields.get("maxDelay", _DELAY, None)
    if delay_max is not None and delay_max < delay:
        fields.refuse("maxDelay", "maxDelay must not be shorter than delay.")
    if (backoff is Backoff.LIST) != bool(fields.given("delays")):
        fields.refuse("delays", "'delays' lists the waits for \"backoff: list\": they go together.")
    retry = Retry(
        attempts=fields.get("attempts", _ATTEMPTS, _RETRY.attempts),
        backoff=backoff,
        delay=delay,
        delay_max=max(delay, _RETRY.delay_max) if delay_max is None else delay_max,
        delays=delays,
        on=fields.get("on", _FAILURE_NAMES, _RETRY.on),
        never=fields.get("never", _FAILURE_NAMES, _RETRY.never),
    )
    fields.done()
    return retry


def _notice(value: Any, path: str) -> None:
    fields = Fields(value, path)
    fields.get("on", _NOTICE_EVENTS, (), required=True)
    fields.get("to", _NOTICE_TARGET, "", required=True)
    fields.done()


_NOTICES: Final = listed(_notice, NOTICES_MAX)
