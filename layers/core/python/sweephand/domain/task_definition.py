"""A task's definition as people write it, checked and turned into a `Task`."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from sweephand.domain.conditions import parse_condition
from sweephand.domain.fields import Fields, Reader, choice, duration, flag, listed, name, text, whole
from sweephand.domain.job import A_MOMENT, Cache, Map, Priority, Task, TriggerRule
from sweephand.domain.kinds import Step, argv
from sweephand.domain.limits import CONDITION_CHARS_MAX, HOLDERS_MAX, MAPPED_MAX, MAPPED_USUAL_MAX, TASKS_MAX
from sweephand.domain.occasions import DATASETS
from sweephand.domain.retry import Backoff, Retry
from sweephand.domain.templates import Reference, check, pieces
from sweephand.errors import InvalidInput

__all__ = [
    "ATTEMPTS_MAX",
    "CACHE_KEY_CHARS_MAX",
    "CACHE_TTL_MAX",
    "DELAY_MAX",
    "GROUP",
    "OVER_CHARS_MAX",
    "PRIORITY",
    "TAGS_MAX",
    "TIMEOUT",
    "read_cache",
    "read_retry",
    "read_step_of",
    "read_task",
]

ATTEMPTS_MAX: Final = 100
DELAY_MAX: Final = timedelta(days=7)
TAGS_MAX: Final = 50
OVER_CHARS_MAX: Final = 1_024
CACHE_KEY_CHARS_MAX: Final = 1_024
CACHE_TTL_MAX: Final = timedelta(days=30)
GROUP: Final = r"[A-Za-z0-9][A-Za-z0-9_-]*(\.[A-Za-z0-9][A-Za-z0-9_-]*)*"

TIMEOUT: Final = duration(A_MOMENT)
PRIORITY: Final = choice(Priority)
_RETRY: Final = Retry()
_DELAY: Final = duration(most=DELAY_MAX)
_DELAYS: Final = listed(_DELAY, ATTEMPTS_MAX, least=1)
_BACKOFF: Final = choice(Backoff)
_ATTEMPTS: Final = whole(1, ATTEMPTS_MAX)
_RETRIES: Final = whole(0, ATTEMPTS_MAX - 1)
_FAILURE_NAMES: Final = listed(text(256), 50, distinct=True)
_WHEN: Final = choice(TriggerRule)
_SLOTS: Final = whole(1, HOLDERS_MAX)
_LABELS: Final = listed(name, TAGS_MAX, distinct=True)
_NEEDS: Final = listed(name, TASKS_MAX, distinct=True)
_GROUP: Final = text(128, pattern=GROUP, right="a group is names with dots between them, such as ingest.raw")
_CONDITION: Final = text(CONDITION_CHARS_MAX)
_OVER: Final = text(OVER_CHARS_MAX)
_MAP_MAX: Final = whole(1, MAPPED_MAX)


def read_task(value: Any, path: str, *, step: Reader[Step], is_stored: bool = False) -> Task:
    """A task; one that is stored was checked when it was saved."""
    fields = Fields(value, path)
    kind, spec = read_step_of(fields, step) or ("", {})
    if len(fields.given("run", "command")) != 1:
        fields.refuse("run", "A task needs one of 'run' and 'command'.")
    task = Task(
        id=fields.get("id", name, "", required=True),
        kind=kind,
        spec=spec,
        needs=fields.get("needs", _NEEDS, ()),
        retry=read_retry(fields),
        timeout=fields.get("timeout", TIMEOUT, None),
        cache=fields.get("cache", read_cache, None),
        when=fields.get("when", _WHEN, TriggerRule.ALL_SUCCESS),
        condition=fields.get("if", _CONDITION if is_stored else _condition, None),
        map=fields.get("map", _map, None),
        branch=fields.get("branch", flag, False),
        pool=fields.get("pool", name, None),
        slots=fields.get("slots", _SLOTS, 1),
        priority=fields.get("priority", PRIORITY, None),
        labels=fields.get("labels", _LABELS, ()),
        group=fields.get("group", _GROUP, None),
        publishes=fields.get("publishes", DATASETS, ()),
    )
    if task.branch and task.map is not None:
        fields.refuse("branch", "A mapped task cannot be a branch: its instances would choose each for themselves.")
    if task.publishes and task.map is not None:
        fields.refuse("publishes", "A mapped task has many successes: let the job, or a task that needs it, publish.")
    if fields.given("slots") and not fields.given("pool"):
        fields.refuse("slots", "'slots' is what the task takes of its 'pool': they go together.")
    fields.done()
    return task


def read_step_of(fields: Fields, step: Reader[Step]) -> Step | None:
    """What `run` says, or `command`, which is short for it."""
    words = fields.get("command", argv, None)
    return fields.get("run", step, None) or (words and ("command", {"value": list(words)})) or None


def _condition(value: Any, path: str) -> str:
    condition = _CONDITION(value, path)
    parse_condition(condition, path)
    return condition


def _map(value: Any, path: str) -> Map:
    fields = Fields(value, path)
    mapped = Map(over=fields.get("over", _over, "", required=True), max=fields.get("max", _MAP_MAX, MAPPED_USUAL_MAX))
    if isinstance(mapped.over, list) and len(mapped.over) > mapped.max:
        fields.refuse("over", f"The list has {len(mapped.over)} items: map.max of the task is {mapped.max}.")
    fields.done()
    return mapped


def _over(value: Any, path: str) -> Any:
    """A template alone, or a list."""
    if isinstance(value, list):
        check(value, path)
        return value
    found = pieces(_OVER(value, path), path)
    if len(found) != 1 or not isinstance(found[0], Reference):
        raise InvalidInput(
            'A task is mapped over a template that gives a list, such as "${tasks.files.output}", or over a list.', path
        )
    check(value, path)
    return value


def read_cache(value: Any, path: str) -> Cache:
    """For how long a result is taken over, and under which key."""
    fields = Fields(value, path)
    cache = Cache(
        key=fields.get("key", _cache_key, "", required=True),
        ttl=fields.get("ttl", duration(timedelta(seconds=1), CACHE_TTL_MAX), timedelta(0), required=True),
    )
    fields.done()
    return cache


def _cache_key(value: Any, path: str) -> str:
    key = text(CACHE_KEY_CHARS_MAX)(value, path)
    check(key, path)
    return key


def read_retry(fields: Fields) -> Retry | None:
    """What `retry` says, or `retries`, which is short for it."""
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
