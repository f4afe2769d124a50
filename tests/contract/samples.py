"""Jobs, runs and rows to store: plain ones by hand, odd ones from Hypothesis."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any, Final, TypedDict

from hypothesis import strategies as st
from msgspec.structs import replace

from sweephand.domain.definition import document_of, parse
from sweephand.domain.ids import JobKey, JobName, Namespace, RunId, RunKey, run_id_of_fire
from sweephand.domain.job import CatchupPolicy, Change, Head, JobEvent, JobStatus, JobVersion
from sweephand.domain.reasons import Reason, ReasonCode
from sweephand.domain.retry import Failure, FailureClass
from sweephand.domain.run import Run, RunState, Trigger
from sweephand.domain.status import StatusRow
from sweephand.domain.trail import Deed

NOW: Final = datetime(2026, 11, 15, 6, 0, tzinfo=UTC)
SECOND: Final = timedelta(seconds=1)
MINUTE: Final = timedelta(minutes=1)
HOUR: Final = timedelta(hours=1)
TICK: Final = timedelta(microseconds=1)
DEFAULT: Final = Namespace("default")
TIMEOUT: Final = Reason(ReasonCode.TIMEOUT, "took too long: 3 s")
JOB: Final = JobKey(DEFAULT, JobName("report"))


class Window(TypedDict):
    """The time that a view is asked for."""

    since: datetime
    until: datetime


def key_of(name: str, namespace: str = DEFAULT) -> JobKey:
    return JobKey(Namespace(namespace), JobName(name))


def run_at(fire_at: datetime = NOW, job: JobKey = JOB, *, run_id: str | None = None, **fields: Any) -> Run:
    """A planned run of a fire; `run_id` for one that is not named by its fire."""
    key = RunKey(job, RunId(run_id) if run_id else run_id_of_fire(fire_at))
    new: dict[str, Any] = {"created_at": NOW, "changed_at": NOW, "nonce": "born"}
    return Run(key, fire_at, fire_at, **(new | fields))


def claimed(run: Run, nonce: str = "claim", *, owner: str = "worker-1") -> Run:
    return run.claimed(now=NOW + SECOND, nonce=nonce, owner=owner, lease=MINUTE, version=1)


def head_of(key: JobKey = JOB, **fields: Any) -> Head:
    """The head of a job that was just put."""
    new: dict[str, Any] = {
        "status": JobStatus.ACTIVE,
        "version": 1,
        "created_at": NOW,
        "in_force_since": NOW,
        "changed_at": NOW,
        "planned_upto": NOW,
        "plan_at": NOW + HOUR,
        "nonce": "put-1",
    }
    return Head(key, **(new | fields))


def version_of(key: JobKey = JOB, number: int = 1) -> JobVersion:
    """A version with most kinds of fields in it."""
    document = document_of(
        {
            "name": str(key.name),
            "description": f"Version {number}: naïve, 日本語, 🕰",
            "schedule": {"cron": "*/5 9-17 * * MON-FRI", "timezone": "Europe/Berlin", "jitter": "30s"},
            "tasks": [{"id": "main", "command": ["echo", "${params.who}"]}],
            "retry": {"attempts": 3, "backoff": "list", "delays": ["1s", "5s"]},
            "params": {"who": "wörld", "ratio": 0.25, "nested": {"deep": [1, None, True]}},
            "tags": ["a", "b"],
        }
    )
    job = parse(document, namespace=key.namespace, now=NOW)
    return JobVersion(key, number, NOW + TICK, "ada", document, job)


def change_of(head: Head, event: JobEvent = JobEvent.PUT, *, at: datetime | None = None, **fields: Any) -> Change:
    return Change(head.key, at or head.changed_at, event, head.version, "ada", **fields)


def deed_at(at: datetime = NOW, deed_id: str = "deed", namespace: str = DEFAULT, **fields: Any) -> Deed:
    """A row of the audit log, about a pool."""
    new: dict[str, Any] = {"actor": "ada", "action": "pool.put", "subject": "pools/db", "after": {"slots": 3}}
    return Deed(Namespace(namespace), at, deed_id, **(new | fields))


def status_row(run: Run, rev: int = 1) -> StatusRow:
    """The row of a queued run at a revision."""
    queued = run.parked(Reason(ReasonCode.POOL, "full"), now=NOW, nonce="n", wake_at=None)
    ended = NOW + SECOND if rev > 1 else None
    return StatusRow(run.key, rev, queued.state, run.trigger, run.fire_at, 0, None, ended, "pool: full")


_keys = count()


def fresh_key() -> JobKey:
    """A job that no other example of this process has used."""
    return key_of(f"job-{next(_keys)}")


# Odd values: any text that UTF-8 has, instants to the microsecond, anything that JSON has.

texts: Final = st.text(max_size=20)
instants: Final = st.integers(0, 2**52).map(lambda n: datetime(1970, 1, 1, tzinfo=UTC) + n * TICK)
jsons: Final = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
STRANGE: Final = (
    "",
    "#",
    "a#b",
    "a/b",
    "a|b",
    "a",
    "a$",
    "a b",
    "ä",
    "名前",
    "🕰",
    "~",
    "!",
    "A",
    "a\x01",
    "'--",
    "%_?*",
)
"""Texts that mean something to a store, and some that would if they were not escaped."""

counts: Final = st.integers(0, 2**31)
reasons: Final = st.builds(Reason, st.sampled_from(ReasonCode), texts)
failures: Final = st.builds(Failure, texts, texts, st.sampled_from(FailureClass))

identities: Final = st.fixed_dictionaries(
    {
        "fire_at": instants,
        "start_at": instants,
        "trigger": st.sampled_from(Trigger),
        "created_at": instants,
        "params": st.dictionaries(texts, jsons, max_size=3),
        "rerun_of": st.none() | texts,
        "rerun_from": st.none() | texts,
        "marks": st.dictionaries(texts, jsons, max_size=3),
        "parent": st.none() | texts,
        "backfill": st.none() | texts,
        "interval_start": st.none() | instants,
        "note": st.none() | texts,
    }
)
movements: Final = st.fixed_dictionaries(
    {
        "state": st.sampled_from(RunState),
        "reason": st.none() | reasons,
        "changed_at": instants,
        "nonce": st.text("0123456789abcdef", min_size=1, max_size=16),
        "version": st.none() | counts,
        "epoch": counts,
        "attempt": counts,
        "lost": counts,
        "owner": st.none() | texts,
        "lease_until": st.none() | instants,
        "wake_at": st.none() | instants,
        "started_at": st.none() | instants,
        "ended_at": st.none() | instants,
        "progress": st.none() | st.integers(0, 100),
        "output": jsons,
        "failure": st.none() | failures,
    }
)

deeds: Final = st.builds(
    Deed,
    namespace=st.just(DEFAULT),
    at=instants,
    id=texts,
    actor=texts,
    action=texts,
    subject=texts,
    before=st.none() | st.dictionaries(texts, jsons, max_size=3),
    after=st.none() | st.dictionaries(texts, jsons, max_size=3),
    note=texts,
)


@st.composite
def runs(draw: st.DrawFn) -> Run:
    """A run with any identity in any state, of a job of its own."""
    identity = draw(identities)
    key = RunKey(fresh_key(), run_id_of_fire(identity["fire_at"]))
    return Run(key, **identity, **draw(movements))


@st.composite
def moved(draw: st.DrawFn, before: Run) -> Run:
    """Any later form of a run: every field of its own, its identity too, which no store may write."""
    fields: dict[str, Any] = draw(identities) | draw(movements)
    return replace(before, **fields, rev=before.rev + 1)


heads: Final = st.builds(
    Head,
    key=st.builds(fresh_key),
    status=st.sampled_from(JobStatus),
    version=st.integers(1, 2**31),
    created_at=instants,
    in_force_since=instants,
    changed_at=instants,
    planned_upto=instants,
    plan_at=st.none() | instants,
    paused_since=st.none() | instants,
    catchup=st.none() | st.sampled_from(CatchupPolicy),
    catchup_upto=st.none() | instants,
    rev=st.just(0),
    nonce=st.text("0123456789abcdef", min_size=1, max_size=16),
)
