"""What an edit changed, in words that somebody reads who did not make it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final

from sweephand.domain.duration import format_duration, parse_duration
from sweephand.errors import InvalidInput

__all__ = ["LINES_MAX", "in_words", "schedule_in_words"]

LINES_MAX: Final = 100

_SHOWN_MAX: Final = 80
_WEEKDAYS: Final = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_WEEKDAY_NAMES: Final = {day[:3].lower(): n for n, day in enumerate(_WEEKDAYS[:7])}
_ALIASES: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_DEFAULTS: Final[Mapping[str, Any]] = {
    "catchup.policy": "latest",
    "catchup.max": 100,
    "catchup.window": "1d",
    "overlap": "allow",
    "priority": "normal",
    "guarantee": "at-least-once",
    "onFailure": "finish",
    "timeout": "1h",
    "retry.attempts": 1,
    "retry.backoff": "exponential",
    "retry.delay": "10s",
    "concurrency.slots": 1,
    "schedule.dst.gap": "shift",
    "schedule.dst.fold": "first",
}
"""What an absent field means, where that is a value."""
_TASK_DEFAULTS: Final[Mapping[str, Any]] = {"when": "all_success", "slots": 1, "branch": False}
_DURATIONS: Final = re.compile(r"(.*\.)?(timeout|runTimeout|startDeadline|delay|maxDelay|window|jitter|ttl|every)")
_OCCASIONS: Final = ("cron", "every", "at", "after", "datasets", "events")
"""What `schedule_in_words` speaks of, with the time zone."""
_NUMBER: Final = re.compile(r"[0-9]{1,4}")


def in_words(before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> list[str]:
    """What changed from one version's document to the next one's, a line each; None stands for no job."""
    if after is None:
        return ["deleted"] if before is not None else []
    if before is None:
        tasks = ", ".join(_ids(after))
        return [f"created: {schedule_in_words(after.get('schedule'))}; {_counted(_ids(after))} {_short(tasks)}"]
    if before == after:
        return []
    lines = list(islice(_lines(before, after), LINES_MAX + 1)) or ["written in another way, with the same meaning"]
    return [*lines[:LINES_MAX], "and more"] if len(lines) > LINES_MAX else lines


def _lines(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    yield from _schedule_lines(before.get("schedule"), after.get("schedule"))
    for name in dict.fromkeys((*before, *after)):
        if name not in ("schedule", "tasks"):
            yield from _field_lines(before.get(name), after.get(name), name, _DEFAULTS)
    yield from _task_lines(before.get("tasks"), after.get("tasks"))


def _ids(document: Mapping[str, Any]) -> list[str]:
    return [task["id"] for task in document.get("tasks") or ()]


def _counted(tasks: list[str]) -> str:
    return "task" if len(tasks) == 1 else f"{len(tasks)} tasks:"


# Schedules.


def _schedule_lines(before: Any, after: Any) -> Iterator[str]:
    was, will_be = schedule_in_words(before), schedule_in_words(after)
    if was != will_be:
        yield f"schedule: {was} → {will_be}"
    old, new = _rest_of(before), _rest_of(after)
    for name in dict.fromkeys((*old, *new)):
        yield from _field_lines(old.get(name), new.get(name), f"schedule.{name}", _DEFAULTS)


def _rest_of(schedule: Any) -> dict[str, Any]:
    given = schedule if isinstance(schedule, Mapping) else {}
    return {name: value for name, value in given.items() if name not in (*_OCCASIONS, "timezone", "needs")}


def schedule_in_words(schedule: Any) -> str:
    """When a job runs, as a person would say it; an expression that has no simple words is quoted."""
    if schedule is None:
        return "no schedule"
    given = {"cron": schedule} if isinstance(schedule, str) else schedule
    words = [_OCCASION_WORDS[kind](given[kind]) for kind in _OCCASIONS if given.get(kind) is not None]
    zone = given.get("timezone")
    waits = _needs_in_words(given["needs"]) if given.get("needs") is not None else ""
    return " and ".join(words) + (f" {zone}" if zone not in (None, "UTC") else "") + waits


def _cron_in_words(expression: str) -> str:
    fields = _ALIASES.get(expression.strip(), expression).split()
    if len(fields) == 6 and fields[0] == "0":
        fields = fields[1:]
    quoted = f'cron "{_short(expression)}"'
    if len(fields) != 5:
        return quoted
    minute, hour, day, month, weekday = fields
    if (hour, day, month, weekday) == ("*", "*", "*", "*"):
        return _minutes_in_words(minute) or quoted
    clock = f"at {int(hour):02d}:{int(minute):02d}" if _NUMBER.fullmatch(hour) and _NUMBER.fullmatch(minute) else ""
    days = _days_in_words(day, month, weekday)
    return f"{days} {clock}" if clock and days else quoted


def _minutes_in_words(minute: str) -> str:
    if minute == "*":
        return "every minute"
    if minute.startswith("*/") and _NUMBER.fullmatch(minute[2:]) and 60 % max(int(minute[2:]), 1) == 0:
        return "every minute" if minute == "*/1" else f"every {int(minute[2:])} minutes"
    return f"every hour at minute {int(minute)}" if _NUMBER.fullmatch(minute) else ""


def _days_in_words(day: str, month: str, weekday: str) -> str:
    """Empty where it takes more than a few words."""
    if month == "*" and (day, weekday) == ("*", "*"):
        return "every day"
    if month == "*" and day == "*":
        return _weekdays_in_words(weekday.lower())
    if month == "*" and weekday == "*" and _NUMBER.fullmatch(day):
        return f"on day {int(day)} of every month"
    return "on the last day of every month" if (day, month, weekday) == ("L", "*", "*") else ""


def _weekdays_in_words(weekday: str) -> str:
    ends = weekday.split("-")
    listed = weekday.split(",")
    if len(ends) == 2 and all(_weekday(end) for end in ends):
        return f"{_weekday(ends[0])} to {_weekday(ends[1])}"
    return f"every {' and '.join(map(_weekday, listed))}" if all(map(_weekday, listed)) else ""


def _weekday(text: str) -> str:
    number = _WEEKDAY_NAMES.get(text, int(text) if _NUMBER.fullmatch(text) else None)
    return _WEEKDAYS[number] if number is not None and number < len(_WEEKDAYS) else ""


def _several_in_words(value: Any) -> str:
    """Names in a list, or under `all` or `any`."""
    if not isinstance(value, Mapping):
        return _short(", ".join(map(str, value)))
    quantity = "any" if value.get("any") is not None else "all"
    some = "any of " if quantity == "any" else ""
    return some + _short(", ".join(map(str, value.get(quantity) or ())))


def _after_in_words(value: Any) -> str:
    is_daily = isinstance(value, Mapping) and value.get("window") == "sameDay"
    zone = f" in {value['timezone']}" if is_daily and value.get("timezone") else ""
    return f"after {_several_in_words(value)}" + (f", once a day{zone}" if is_daily else "")


def _needs_in_words(value: Any) -> str:
    given = value if isinstance(value, Mapping) else {"jobs": value}
    daily = " of the same day" if given.get("window") == "sameDay" else ""
    zone = f" in {given['timezone']}" if given.get("timezone") else ""
    within = f" for at most {_duration(given['timeout'])}" if given.get("timeout") is not None else ""
    return f", waiting for {_short(', '.join(map(str, given.get('jobs') or ())))}{daily}{zone}{within}"


def _events_in_words(value: Any) -> str:
    kinds = (f"{rule.get('source')} {rule.get('type') or ''}".strip() for rule in value)
    matches = " that match" if any(rule.get("match") for rule in value) else ""
    return f"on events {_short(', '.join(kinds))}{matches}"


_OCCASION_WORDS: Final[Mapping[str, Any]] = {
    "cron": _cron_in_words,
    "every": lambda value: f"every {_duration(value)}",
    "at": lambda value: f"once at {value}",
    "after": _after_in_words,
    "datasets": lambda value: f"on updates of {_several_in_words(value)}",
    "events": _events_in_words,
}


# Tasks.


def _task_lines(before: Any, after: Any) -> Iterator[str]:
    old = {task["id"]: task for task in before or ()}
    new = {task["id"]: task for task in after or ()}
    for name in old:
        if name not in new:
            yield f"task {name} removed"
    for name, task in new.items():
        if name in old:
            yield from _edited_task(name, old[name], task)
        else:
            needs = task.get("needs") or ()
            yield f"task {name} added" + (f", needs {_short(', '.join(needs))}" if needs else "")
    kept = [name for name in old if name in new]
    if kept != [name for name in new if name in old]:
        yield "the order of the tasks"


def _edited_task(name: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    for field in dict.fromkeys((*before, *after)):
        for line in _field_lines(before.get(field), after.get(field), field, _TASK_DEFAULTS):
            path, _, change = line.partition(": ")
            yield f"task {name}: {path} {change}"


# Single fields.


def _field_lines(before: Any, after: Any, path: str, defaults: Mapping[str, Any]) -> Iterator[str]:
    """A line for each value that another means something else than."""
    kinds = [isinstance(value, Mapping) for value in (before, after) if value is not None]
    if kinds and all(kinds):
        old, new = before or {}, after or {}
        for name in dict.fromkeys((*old, *new)):
            yield from _field_lines(old.get(name), new.get(name), f"{path}.{name}", defaults)
        return
    was = defaults.get(path) if before is None else before
    will_be = defaults.get(path) if after is None else after
    if was == will_be and isinstance(was, bool) == isinstance(will_be, bool):
        return
    texts = [_value(value, path) for value in (was, will_be)]
    if texts[0] != texts[1] or not _DURATIONS.fullmatch(path):
        yield f"{path}: {texts[0]} → {texts[1]}"


def _value(value: Any, path: str) -> str:
    if value is None:
        return "none"
    if _DURATIONS.fullmatch(path):
        return _duration(value)
    if isinstance(value, list) and value and all(isinstance(one, str) for one in value):
        return _short(" ".join(value) if path.endswith("command") else ", ".join(value))
    return _short(value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False))


def _duration(value: Any) -> str:
    try:
        return format_duration(parse_duration(value, path=""))
    except InvalidInput:
        return _short(str(value))


def _short(text: str) -> str:
    return text if len(text) <= _SHOWN_MAX else f"{text[: _SHOWN_MAX - 1]}…"
