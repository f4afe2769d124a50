"""The `schedule` of a definition as people write it, compiled into a `Schedule`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from msgspec.structs import replace

from sweephand.domain.cron import Cron
from sweephand.domain.events import EventRule
from sweephand.domain.fields import Fields, choice, duration, instant, listed, name, object_of, text
from sweephand.domain.schedule import (
    BLACKOUTS_MAX,
    EPOCH,
    JITTER_MAX,
    PERIOD_MAX,
    At,
    Blackout,
    Every,
    Fold,
    Gap,
    HoldPolicy,
    Schedule,
)
from sweephand.domain.zones import zone
from sweephand.errors import InvalidInput

__all__ = ["JOB_NAMES", "read_occasions", "read_schedule"]

DEPENDENCIES_MAX: Final = 100
EVENTS_MAX: Final = 50
MATCH_BYTES_MAX: Final = 4_096

JOB_NAMES: Final = listed(name, DEPENDENCIES_MAX, least=1, distinct=True)
_GAP: Final = choice(Gap)
_FOLD: Final = choice(Fold)
_HOLD_POLICY: Final = choice(HoldPolicy)
_PERIOD: Final = duration(timedelta(seconds=1), PERIOD_MAX)
_JITTER: Final = duration(most=JITTER_MAX)
_EVENT_NAME: Final = text(256)
_MATCH: Final = object_of(MATCH_BYTES_MAX)


def read_schedule(value: Any, path: str, *, namespace: str, job: Any, now: datetime) -> Schedule | None:
    """The compiled schedule; None where other jobs or events, not the clock, make the job run."""
    hash_id = f"{namespace}/{job}"

    def cron(written: Any, at: str) -> Cron | Every:
        from sweephand.domain import expression  # late: who only reads stored versions needs no parser

        return expression.parse(written, hash_id=hash_id, path=at)

    if isinstance(value, str):
        return Schedule(_begun(cron(value, path), None, now))
    fields = Fields(value, path)
    recurrence = fields.get("cron", cron, None)
    period = fields.get("every", _PERIOD, None)
    one_shot_at = fields.get("at", instant, None)
    fields.at_most_one("cron", "every", "at")
    gap, fold = fields.get("dst", _dst, (Gap.SHIFT, Fold.FIRST))
    start_at = fields.get("startAt", instant, None)
    end_at = fields.get("endAt", instant, None)
    timezone = fields.get("timezone", _timezone, "UTC")
    jitter = fields.get("jitter", _JITTER, timedelta(0))
    calendar = fields.get("calendar", name, None)
    blackouts = fields.get("blackouts", _BLACKOUTS, ())
    if job in fields.get("after", JOB_NAMES, ()):
        fields.refuse("after", "A job cannot come after itself.")
    fields.get("events", _EVENTS, ())
    if not fields.given("cron", "every", "at", "after", "events"):
        fields.refuse("", "A schedule needs one of cron, every, at, after and events.")
    fields.done()
    found: Cron | Every | At
    if recurrence is not None:
        found = _begun(recurrence, start_at, now)
    elif period is not None:
        # From the epoch, so that an edit of something else does not move the fires.
        found = Every(period, start_at) if start_at is not None else Every(period)
    elif one_shot_at is not None:
        found = At(one_shot_at)
    else:
        return None
    return Schedule(found, timezone, gap, fold, start_at, end_at, jitter, calendar, blackouts)


def read_occasions(document: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[EventRule, ...]]:
    """The jobs and the events that make a job run, from a document whose fields `read_schedule` refuses if wrong."""
    schedule = document.get("schedule")
    given = schedule if isinstance(schedule, Mapping) else {}
    after = given.get("after") or document.get("dependencies") or ()
    events = given.get("events") or ()
    try:
        return JOB_NAMES(list(after), "") if after else (), _EVENTS(list(events), "") if events else ()
    except (InvalidInput, TypeError):
        return (), ()


def _begun(recurrence: Cron | Every, start_at: datetime | None, now: datetime) -> Cron | Every:
    """A rate counts from its start or, as EventBridge has it, from when it is made."""
    if isinstance(recurrence, Cron):
        return recurrence
    return replace(recurrence, anchor=start_at or now.replace(microsecond=0))


def _timezone(value: Any, path: str) -> str:
    if not isinstance(value, str):
        raise InvalidInput("A time zone is an IANA name, such as Europe/Berlin.", path)
    try:
        zone(value)
    except InvalidInput as refused:
        raise InvalidInput(refused.message, path) from None
    return value


def _dst(value: Any, path: str) -> tuple[Gap, Fold]:
    fields = Fields(value, path)
    policy = fields.get("gap", _GAP, Gap.SHIFT), fields.get("fold", _FOLD, Fold.FIRST)
    fields.done()
    return policy


def _blackout(value: Any, path: str) -> Blackout:
    fields = Fields(value, path)
    from_ = fields.get("from", instant, EPOCH, required=True)
    to = fields.get("to", instant, EPOCH, required=True)
    policy = fields.get("policy", _HOLD_POLICY, HoldPolicy.SKIP)
    fields.done()
    try:
        return Blackout(from_, to, policy)
    except InvalidInput as refused:
        raise InvalidInput(refused.message, path) from None


def _event(value: Any, path: str) -> EventRule:
    fields = Fields(value, path)
    rule = EventRule(
        fields.get("source", _EVENT_NAME, "", required=True),
        fields.get("type", _EVENT_NAME, None),
        fields.get("match", _MATCH, {}),
    )
    fields.done()
    return rule


_BLACKOUTS: Final = listed(_blackout, BLACKOUTS_MAX)
_EVENTS: Final = listed(_event, EVENTS_MAX, least=1)
