"""What is stored: the attributes of each item, and the way back. Names are short, since names are paid for too.

Times are microseconds since 1970 as numbers, and ISO texts of one width where they are part of a sort key. What is
None or empty is left out. Free-form values (parameters, outputs, documents) are JSON texts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from hashlib import blake2b
from typing import Any, Final

from sweephand.aws.calls import Item
from sweephand.domain.ids import JobKey, RunId, RunKey
from sweephand.domain.job import CatchupPolicy, Change, Head, JobEvent, JobStatus
from sweephand.domain.ledger import Dropped, FireStatus, LedgerPage
from sweephand.domain.output import decode_output, encode_output
from sweephand.domain.reasons import Reason
from sweephand.domain.retry import Failure
from sweephand.domain.run import Run, RunState, Trigger
from sweephand.topology import TTL

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_TICK: Final = timedelta(microseconds=1)
_SECOND: Final = timedelta(seconds=1)

HEAD: Final = "head"

Fields = dict[str, Item | None]


# Single values.


def text(value: str | None) -> Item | None:
    return None if value is None else {"S": value}


def number(value: int | None) -> Item | None:
    return None if value is None else {"N": str(value)}


def count(value: int) -> Item | None:
    """A number that is mostly zero, and then not stored."""
    return {"N": str(value)} if value else None


def instant(at: datetime | None) -> Item | None:
    return None if at is None else {"N": str((at - _EPOCH) // _TICK)}


def free(value: Any) -> Item | None:
    """A free-form value; an empty one is not stored."""
    return None if value is None or value == {} else {"S": as_json(value)}


def as_json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def end(at: datetime) -> Item:
    """The moment after which DynamoDB may delete the item, in whole seconds as it wants them."""
    return {"N": str((at - _EPOCH) // _SECOND + 1)}


def stamp(at: datetime) -> str:
    """An instant as part of a sort key: one width, so that texts sort as instants do."""
    return at.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds")


def unstamp(stamped: str) -> datetime:
    return datetime.fromisoformat(stamped).replace(tzinfo=UTC)


def digest(stranger: str) -> str:
    """A text of any length and with anything in it, as a part of a key: without '#', and always as long."""
    return blake2b(stranger.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def item_of(pk: str, sk: str, fields: Mapping[str, Item | None]) -> Item:
    """An item without its absent fields."""
    present = {name: value for name, value in fields.items() if value is not None}
    return {"pk": {"S": pk}, "sk": {"S": sk}, **present}


def _s(item: Item, name: str) -> str | None:
    return item[name]["S"] if name in item else None


def read_count(item: Item, name: str) -> int:
    return int(item[name]["N"]) if name in item else 0


def _n(item: Item, name: str) -> int | None:
    return int(item[name]["N"]) if name in item else None


def read_instant(item: Item, name: str) -> datetime | None:
    return _at(item[name]) if name in item else None


def _at(value: Item) -> datetime:
    return _EPOCH + int(value["N"]) * _TICK


def _free(item: Item, name: str) -> Any:
    return json.loads(item[name]["S"]) if name in item else None


# Runs.


def run_sort_key(run_id: str) -> str:
    return f"r#{run_id}"


def task_sort_key(task: str) -> str:
    return f"t#{task}"


def run_place(key: RunKey) -> tuple[str, str]:
    """The partition and the sort key of a run: a job's runs lie together, and a run's tasks."""
    within, name = key.place
    return within, task_sort_key(name) if key.task else run_sort_key(name)


def run_item(run: Run, *, keep: timedelta) -> Item:
    """A run as it is created."""
    identity = {
        "f": instant(run.fire_at),
        "s": instant(run.start_at) if run.start_at != run.fire_at else None,
        "t": text(run.trigger) if run.trigger is not Trigger.SCHEDULE else None,
        "c": instant(run.created_at),
        "p": free(dict(run.params)),
        "ro": text(run.rerun_of),
        "rf": text(run.rerun_from),
        "mk": free(dict(run.marks)),
        "pa": text(run.parent),
        "bf": text(run.backfill),
        "is": instant(run.interval_start),
        "nt": text(run.note),
    }
    return item_of(*run_place(run.key), identity | run_fields(run, keep=keep))


def run_fields(run: Run, *, keep: timedelta) -> Fields:
    """What may change in a run's life; a terminal run is given its end."""
    return {
        "st": text(run.state),
        "re": text(str(run.reason)) if run.reason else None,
        "ch": instant(run.changed_at),
        "rv": number(run.rev),
        "nc": text(run.nonce or None),
        "v": number(run.version),
        "e": count(run.epoch),
        "a": count(run.attempt),
        "l": count(run.lost),
        "ow": text(run.owner),
        "lu": instant(run.lease_until),
        "w": instant(run.wake_at),
        "sa": instant(run.started_at),
        "ea": instant(run.ended_at),
        "pr": number(run.progress),
        "o": None if run.output is None else {"S": as_json(encode_output(run.output))},
        "fl": free(run.failure.encode()) if run.failure else None,
        TTL: end((run.ended_at or run.changed_at) + keep) if run.is_terminal else None,
    }


def run_of(item: Item) -> Run:
    fire_at = _at(item["f"])
    reason, failure = _s(item, "re"), _free(item, "fl")
    return Run(
        key=RunKey.at(item["pk"]["S"], item["sk"]["S"][len("r#") :]),
        fire_at=fire_at,
        start_at=read_instant(item, "s") or fire_at,
        trigger=Trigger(_s(item, "t") or Trigger.SCHEDULE),
        created_at=_at(item["c"]),
        params=_free(item, "p") or {},
        rerun_of=_s(item, "ro"),
        rerun_from=_s(item, "rf"),
        marks=_free(item, "mk") or {},
        parent=_s(item, "pa"),
        backfill=_s(item, "bf"),
        interval_start=read_instant(item, "is"),
        note=_s(item, "nt"),
        state=RunState(item["st"]["S"]),
        reason=None if reason is None else Reason.of(reason),
        changed_at=_at(item["ch"]),
        rev=int(item["rv"]["N"]),
        nonce=_s(item, "nc") or "",
        version=_n(item, "v"),
        epoch=read_count(item, "e"),
        attempt=read_count(item, "a"),
        lost=read_count(item, "l"),
        owner=_s(item, "ow"),
        lease_until=read_instant(item, "lu"),
        wake_at=read_instant(item, "w"),
        started_at=read_instant(item, "sa"),
        ended_at=read_instant(item, "ea"),
        progress=_n(item, "pr"),
        output=decode_output(_free(item, "o")),
        failure=None if failure is None else Failure.decode(failure),
    )


# The ledger's rows.


def dropped_sort_key(first: datetime) -> str:
    return f"d#{stamp(first)}"


def dropped_item(job: JobKey, dropped: Dropped, *, until: datetime) -> Item:
    fields = {
        "l": instant(dropped.last),
        "n": number(dropped.count),
        "re": text(str(dropped.reason)),
        TTL: end(until),
    }
    return item_of(str(job), dropped_sort_key(dropped.first), fields)


def dropped_of(item: Item) -> Dropped:
    first = unstamp(item["sk"]["S"].removeprefix("d#"))
    return Dropped(first, _at(item["l"]), int(item["n"]["N"]), Reason.of(item["re"]["S"]))


def page_sort_key(day: date) -> str:
    return f"p#{day.isoformat()}"


def page_item(page: LedgerPage) -> Item:
    fields = {
        "j": instant(page.judged_at),
        "tz": text(page.tzdata),
        "n": free(dict(page.counts)),
        "m": free([stamp(at) for at in page.missing] or None),
        "e": free(list(page.extra) or None),
    }
    return item_of(str(page.job), page_sort_key(page.day), fields)


def page_of(item: Item) -> LedgerPage:
    return LedgerPage(
        job=JobKey.of(item["pk"]["S"]),
        day=date.fromisoformat(item["sk"]["S"].removeprefix("p#")),
        judged_at=_at(item["j"]),
        tzdata=item["tz"]["S"],
        counts={FireStatus(status): n for status, n in (_free(item, "n") or {}).items()},
        missing=tuple(unstamp(at) for at in _free(item, "m") or ()),
        extra=tuple(RunId(run_id) for run_id in _free(item, "e") or ()),
    )


# Jobs.


def head_item(head: Head) -> Item:
    identity = {"c": instant(head.created_at)}
    return item_of(str(head.key), HEAD, identity | head_fields(head))


def head_fields(head: Head) -> Fields:
    """What may change in a job's life."""
    return {
        "st": text(head.status),
        "v": number(head.version),
        "i": instant(head.in_force_since),
        "ch": instant(head.changed_at),
        "u": instant(head.planned_upto),
        "pa": instant(head.plan_at),
        "ps": instant(head.paused_since),
        "cu": text(head.catchup),
        "cx": instant(head.catchup_upto),
        "rv": number(head.rev),
        "nc": text(head.nonce or None),
    }


def head_of(item: Item) -> Head:
    catchup = _s(item, "cu")
    return Head(
        key=JobKey.of(item["pk"]["S"]),
        status=JobStatus(item["st"]["S"]),
        version=int(item["v"]["N"]),
        created_at=_at(item["c"]),
        in_force_since=_at(item["i"]),
        changed_at=_at(item["ch"]),
        planned_upto=_at(item["u"]),
        plan_at=read_instant(item, "pa"),
        paused_since=read_instant(item, "ps"),
        catchup=None if catchup is None else CatchupPolicy(catchup),
        catchup_upto=read_instant(item, "cx"),
        rev=int(item["rv"]["N"]),
        nonce=_s(item, "nc") or "",
    )


def change_fields(change: Change) -> Fields:
    """A row of the timeline."""
    return {
        "j": text(str(change.key)),
        "at": instant(change.at),
        "ev": text(change.event),
        "v": number(change.version),
        "by": text(change.actor),
        "cu": text(change.catchup),
        "nt": text(change.note or None),
    }


def change_of(item: Item) -> Change:
    catchup = _s(item, "cu")
    return Change(
        key=JobKey.of(item["j"]["S"]),
        at=_at(item["at"]),
        event=JobEvent(item["ev"]["S"]),
        version=int(item["v"]["N"]),
        actor=item["by"]["S"],
        catchup=None if catchup is None else CatchupPolicy(catchup),
        note=_s(item, "nt") or "",
    )
