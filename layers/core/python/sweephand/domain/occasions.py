"""What makes a job run beside the clock: other jobs, datasets, events; how several of them are taken together; and what
the clock's own fires wait for."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from typing import Any, Final

from msgspec import Struct

from sweephand.domain.events import EventRule
from sweephand.domain.fields import Fields, Reader, choice, duration, listed, name, object_of, shown, text
from sweephand.domain.zones import reading, zone
from sweephand.errors import InvalidInput

__all__ = [
    "DATASETS",
    "EVENTS",
    "JOB_NAMES",
    "AfterRule",
    "Needs",
    "NeedsWindow",
    "Occasions",
    "Quantity",
    "Window",
    "beginning_of",
    "local_day",
    "read_after",
    "read_datasets",
    "read_needs",
    "read_occasions",
    "read_timezone",
]

DEPENDENCIES_MAX: Final = 100
NEEDS_MAX: Final = 20
NEEDS_TIMEOUT_MAX: Final = timedelta(days=7)
DATASETS_MAX: Final = 100
EVENTS_MAX: Final = 50
MATCH_BYTES_MAX: Final = 4_096


class Quantity(StrEnum):
    """How many of several it takes; stored values, which are fields of the document as well."""

    ALL = "all"
    """Each of them, since the last run."""
    ANY = "any"
    """One is enough, and each makes a run."""


class Window(StrEnum):
    """Which successes of several jobs belong together."""

    LATEST = "latest"
    """The last of each that no run has used."""
    SAME_DAY = "sameDay"
    """Those of runs whose fire times are on one local day: a run for each day, whatever is repeated."""


class AfterRule(Struct, frozen=True):
    """How the successes of the jobs before it make a job run."""

    quantity: Quantity = Quantity.ALL
    window: Window = Window.LATEST
    timezone: str = "UTC"
    """Whose days they are, for `sameDay`."""


class NeedsWindow(StrEnum):
    """Which run of another job a fire waits for; stored values."""

    LATEST_BEFORE = "latestBefore"
    """That of its last fire up to this one's time which was not skipped."""
    SAME_DAY = "sameDay"
    """Any whose fire time is on the same local day."""


class Needs(Struct, frozen=True):
    """What a fire of the clock waits for: a success of each of these jobs."""

    jobs: tuple[str, ...]
    window: NeedsWindow = NeedsWindow.LATEST_BEFORE
    timezone: str = "UTC"
    """Whose days they are, for `sameDay`."""
    timeout: timedelta = timedelta(days=1)
    """How long it waits; then it is skipped."""


class Occasions(Struct, frozen=True):
    """All that makes a job run beside the clock."""

    after: tuple[str, ...] = ()
    after_rule: AfterRule = AfterRule()
    datasets: tuple[str, ...] = ()
    datasets_quantity: Quantity = Quantity.ALL
    events: tuple[EventRule, ...] = ()
    needs: Needs | None = None


def local_day(instant: datetime, timezone: str) -> date:
    """The day on which clocks in a zone show an instant."""
    return instant.astimezone(zone(timezone)).date()


def beginning_of(day: date, timezone: str) -> datetime:
    """The first instant of a local day."""
    return reading(datetime.combine(day, time()), zone(timezone)).before.astimezone(UTC)


# As people write them.

JOB_NAMES: Final = listed(name, DEPENDENCIES_MAX, least=1, distinct=True)
DATASETS: Final = listed(name, DATASETS_MAX, least=1, distinct=True)
_EVENT_NAME: Final = text(256)
_MATCH: Final = object_of(MATCH_BYTES_MAX)
_WINDOW: Final = choice(Window)
_NEEDED: Final = listed(name, NEEDS_MAX, least=1, distinct=True)
_NEEDS_WINDOW: Final = choice(NeedsWindow)
_NEEDS_TIMEOUT: Final = duration(timedelta(seconds=1), NEEDS_TIMEOUT_MAX)


def read_after(value: Any, path: str, *, timezone: str = "UTC") -> tuple[tuple[str, ...], AfterRule]:
    """The jobs that come before, and how their successes are taken; a bare list means the last of all of them.

    `timezone` is that of the schedule, which counts where `after` has none of its own.
    """
    if isinstance(value, list):
        return JOB_NAMES(value, path), AfterRule()
    fields = _several(value, path, "jobs")
    quantity, names = _quantity(fields, JOB_NAMES)
    window = fields.get("window", _WINDOW, Window.LATEST)
    own_zone = fields.get("timezone", read_timezone, None)
    if own_zone is not None and window is not Window.SAME_DAY:
        fields.refuse("timezone", "'timezone' says whose days \"window: sameDay\" means: they go together.")
    fields.done()
    is_daily = window is Window.SAME_DAY
    return names, AfterRule(quantity, window, (own_zone or timezone) if is_daily else "UTC")


def read_needs(value: Any, path: str, *, timezone: str = "UTC") -> Needs:
    """What the schedule's own fires wait for; a bare list means the last fire of each. `timezone` is the schedule's."""
    if isinstance(value, list):
        return Needs(_NEEDED(value, path))
    fields = _several(value, path, "jobs", "'jobs'")
    jobs = fields.get("jobs", _NEEDED, (), required=True)
    window = fields.get("window", _NEEDS_WINDOW, NeedsWindow.LATEST_BEFORE)
    own_zone = fields.get("timezone", read_timezone, None)
    timeout = fields.get("timeout", _NEEDS_TIMEOUT, Needs(()).timeout)
    if own_zone is not None and window is not NeedsWindow.SAME_DAY:
        fields.refuse("timezone", "'timezone' says whose days \"window: sameDay\" means: they go together.")
    fields.done()
    is_daily = window is NeedsWindow.SAME_DAY
    return Needs(jobs, window, (own_zone or timezone) if is_daily else "UTC", timeout)


def read_datasets(value: Any, path: str) -> tuple[tuple[str, ...], Quantity]:
    """The datasets whose updates make a job run; a bare list means all of them."""
    if isinstance(value, list):
        return DATASETS(value, path), Quantity.ALL
    fields = _several(value, path, "datasets")
    quantity, names = _quantity(fields, DATASETS)
    fields.done()
    return names, quantity


def _quantity(fields: Fields, names: Reader[tuple[str, ...]]) -> tuple[Quantity, tuple[str, ...]]:
    """The names under `all` or under `any`, of which an object has one."""
    every, some = (fields.get(str(one), names, ()) for one in Quantity)
    fields.at_most_one(*map(str, Quantity))
    if not fields.given(*map(str, Quantity)):
        fields.refuse("", "It needs one of 'all' and 'any', with a list of names.")
    return (Quantity.ALL, every) if fields.given(str(Quantity.ALL)) else (Quantity.ANY, some)


def _several(value: Any, path: str, what: str, fields: str = "'all' or 'any'") -> Fields:
    if not isinstance(value, Mapping):
        raise InvalidInput(f"{shown(value)} is neither a list of {what} nor an object with {fields}.", path)
    return Fields(value, path)


def read_timezone(value: Any, path: str) -> str:
    """The IANA name of a time zone."""
    if not isinstance(value, str):
        raise InvalidInput("A time zone is an IANA name, such as Europe/Berlin.", path)
    try:
        zone(value)
    except InvalidInput as refused:
        raise InvalidInput(refused.message, path) from None
    return value


def _event(value: Any, path: str) -> EventRule:
    fields = Fields(value, path)
    rule = EventRule(
        fields.get("source", _EVENT_NAME, "", required=True),
        fields.get("type", _EVENT_NAME, None),
        fields.get("match", _MATCH, {}),
    )
    fields.done()
    return rule


EVENTS: Final = listed(_event, EVENTS_MAX, least=1)


def read_occasions(document: Mapping[str, Any]) -> Occasions:
    """What makes a job run beside the clock, from a document whose fields `read_schedule` refuses if wrong."""
    schedule = document.get("schedule")
    given = schedule if isinstance(schedule, Mapping) else {}
    after = given.get("after") or document.get("dependencies")
    datasets, events, needs = given.get("datasets"), given.get("events"), given.get("needs")
    try:
        zone_name = read_timezone(given.get("timezone") or "UTC", "")
        jobs, rule = read_after(after, "", timezone=zone_name) if after else ((), AfterRule())
        names, quantity = read_datasets(datasets, "") if datasets else ((), Quantity.ALL)
        needed = read_needs(needs, "", timezone=zone_name) if needs else None
        return Occasions(jobs, rule, names, quantity, EVENTS(events, "") if events else (), needed)
    except InvalidInput:
        return Occasions()
