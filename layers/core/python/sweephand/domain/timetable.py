"""The `schedule` of a definition as people write it, compiled into a `Schedule`."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final

from msgspec.structs import replace

from sweephand.domain.cron import Cron
from sweephand.domain.fields import Fields, choice, duration, instant, listed, name
from sweephand.domain.occasions import EVENTS, read_after, read_datasets, read_needs, read_timezone
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
from sweephand.errors import InvalidInput

__all__ = ["read_schedule"]

_GAP: Final = choice(Gap)
_FOLD: Final = choice(Fold)
_HOLD_POLICY: Final = choice(HoldPolicy)
_PERIOD: Final = duration(timedelta(seconds=1), PERIOD_MAX)
_JITTER: Final = duration(most=JITTER_MAX)


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
    timezone = fields.get("timezone", read_timezone, "UTC")
    jitter = fields.get("jitter", _JITTER, timedelta(0))
    calendar = fields.get("calendar", name, None)
    blackouts = fields.get("blackouts", _BLACKOUTS, ())
    if job in fields.get("after", read_after, ((),))[0]:
        fields.refuse("after", "A job cannot come after itself.")
    fields.get("datasets", read_datasets, None)
    fields.get("events", EVENTS, ())
    needs = fields.get("needs", read_needs, None)
    if needs is not None and job in needs.jobs:
        fields.refuse("needs", "A job cannot wait for itself.")
    if needs is not None and not fields.given("cron", "every", "at"):
        fields.refuse("needs", "'needs' is what fires of the clock wait for: it goes with cron, every or at.")
    if not fields.given("cron", "every", "at", "after", "datasets", "events"):
        fields.refuse("", "A schedule needs one of cron, every, at, after, datasets and events.")
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


def _begun(recurrence: Cron | Every, start_at: datetime | None, now: datetime) -> Cron | Every:
    """A rate counts from its start or, as EventBridge has it, from when it is made."""
    if isinstance(recurrence, Cron):
        return recurrence
    return replace(recurrence, anchor=start_at or now.replace(microsecond=0))


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


_BLACKOUTS: Final = listed(_blackout, BLACKOUTS_MAX)
