"""What puts right what got stuck, and what the ledger's pages, dead letters and views say."""

from __future__ import annotations

from datetime import timedelta

import pytest

from sweephand.calls import Call, Outcome, Succeeded
from sweephand.domain.ids import RunId
from sweephand.domain.job import JobStatus
from sweephand.domain.ledger import LedgerPage
from sweephand.domain.limits import REDRIVES_MAX
from sweephand.domain.reasons import ReasonCode
from sweephand.domain.run import Run, RunState
from sweephand.engine.audit import Audited
from sweephand.engine.delete import delete
from sweephand.engine.project import project, rebuild
from sweephand.engine.rerun import rerun
from sweephand.engine.sweep import sweep
from sweephand.engine.trigger import trigger
from sweephand.engine.watch import Watched, watch
from sweephand.messages import AttemptRun, SweepShards, encode
from sweephand.ports import DeadLetter, Lane
from tests.engine.world import NS, PERMANENT, START, Town, at, code_of, job, run_key

HOURLY = "0 * * * *"
DAY = timedelta(days=1)


def purge(town: Town, *tables: str) -> None:
    for table in tables:
        town.stores.database.run(f"DELETE FROM {table}", ())


def to_the_next_day(town: Town, *, days: int = 1) -> None:
    town.ticks_every = timedelta(minutes=10)
    town.advance(to=START.replace(hour=0, minute=15, second=0) + days * DAY)


def page(town: Town) -> LedgerPage | None:
    """The first day's."""
    since = START.replace(hour=0, minute=0, second=0)
    pages = town.stores.runs.pages(job(), since=since, until=since + DAY)
    return pages[0] if pages else None


def test_a_lost_message_is_sent_again_once_it_is_overdue(either: Town) -> None:
    either.put(schedule="5 12 * * *")
    for one in either.stores.inbox.receive(Lane.NORMAL, most=10, hold=timedelta(0)):
        either.stores.inbox.delete([one])
    either.clock.at = at("12:05")
    either.stores.inbox.delete(either.stores.inbox.receive(Lane.NORMAL, most=10, hold=timedelta(0)))
    either.clock.at = at("12:09")
    assert either.audit().resent == 0
    either.clock.at = at("12:11")
    assert either.audit().resent == 1
    either.drive()
    assert either.run(at("12:05")).state is RunState.SUCCEEDED
    assert either.audit() == Audited(jobs=1)


def test_a_purged_queue_and_lost_hints_cost_minutes_and_no_run(town: Town) -> None:
    town.put()
    town.put("other", None, concurrency={"runs": 1})
    town.advance(minutes=7)
    trigger(town.world, job("other"))
    purge(town, "messages", "due")
    town.sleep_through(minutes=6)
    for _ in range(4):
        town.audit()
        town.advance(minutes=6)
    assert set(town.fates().values()) == {"fired"}
    assert town.runs("other")[0].state is RunState.SUCCEEDED


def test_a_cursor_whose_hint_was_lost_is_planned_again(town: Town) -> None:
    town.put()
    town.advance(minutes=1)
    purge(town, "due")
    town.advance(minutes=30)
    assert town.audit().rearmed == 1
    town.advance(minutes=20)
    assert not town.holes()


def test_a_run_that_a_pause_holds_is_not_sent_again(town: Town) -> None:
    town.put()
    town.pause()
    town.advance(minutes=20)
    assert town.audit().resent == 0


def test_an_open_run_too_old_for_the_auditor_is_sent_again_every_hour(town: Town) -> None:
    town.put(schedule="5 12 * * *")
    town.advance(minutes=6)
    town.ticks_every = timedelta(hours=1)
    town.advance(days=3)
    again = rerun(town.world, run_key(at("12:05")))
    for _ in range(3):
        purge(town, "messages")
        town.sleep_through(minutes=70)
        sweep(town.world, range(town.world.shards.count()))
    town.drive()
    assert town.run(again.key).is_terminal


def test_a_closed_day_gets_its_page_once(town: Town) -> None:
    town.put(schedule=HOURLY)
    to_the_next_day(town)
    assert town.audit().judged == 1
    assert town.audit().judged == 0
    written = page(town)
    assert written is not None
    assert (written.counts, written.is_clean) == ({"fired": 11}, True)


def test_a_day_with_a_pending_fire_is_judged_when_that_has_its_fate(town: Town) -> None:
    town.put(schedule=HOURLY)
    town.pause()
    to_the_next_day(town)
    assert town.audit().judged == 0
    town.resume(catchup="latest")
    town.advance(minutes=1)
    assert town.audit().judged == 1


def test_a_day_that_was_pending_for_longer_than_a_day_is_judged_too(town: Town) -> None:
    town.put(schedule=HOURLY)
    town.pause()
    to_the_next_day(town)
    town.audit()
    to_the_next_day(town, days=2)
    town.audit()
    town.resume(catchup="none")
    town.advance(minutes=1)
    town.audit()
    assert page(town) is not None


def test_a_page_names_what_is_missing_and_what_is_extra(town: Town) -> None:
    town.put(schedule=HOURLY)
    to_the_next_day(town)
    town.stores.database.run("DELETE FROM runs WHERE run_id = ?", ("20270615T150000Z",))
    extra = Run(
        run_key(at("14:30")), at("14:30"), at("14:30"), created_at=START, changed_at=START, state=RunState.SUCCEEDED
    )
    assert town.stores.runs.create([extra]) == [True]
    assert town.audit() == Audited(jobs=1, judged=1, missing=1, extra=1)
    written = page(town)
    assert written is not None
    assert (written.missing, written.extra) == ((at("15:00"),), (RunId("20270615T143000Z"),))


def letter(key: str = "5", *, redriven: int = 0) -> DeadLetter:
    return DeadLetter(key, encode(AttemptRun(run_key(at("12:05")), redriven=redriven)), Lane.NORMAL, START)


def test_a_dead_message_of_an_open_run_is_sent_again(town: Town) -> None:
    town.put(schedule="5 12 * * *")
    purge(town, "messages")
    town.clock.at = at("12:06")
    assert watch(town.world, letter()) is Watched.SENT_AGAIN
    town.drive()
    assert town.run(at("12:05")).state is RunState.SUCCEEDED


def test_a_message_that_dies_again_and_again_fails_its_run_as_poison(town: Town) -> None:
    town.put(schedule="5 12 * * *")
    town.clock.at = at("12:06")
    assert watch(town.world, letter(redriven=REDRIVES_MAX - 1)) is Watched.SENT_AGAIN
    assert watch(town.world, letter(redriven=REDRIVES_MAX)) is Watched.FAILED
    assert code_of(town.run(at("12:05"))) is ReasonCode.POISON


def test_a_dead_message_of_an_ended_run_does_nothing(town: Town) -> None:
    town.put(schedule="5 12 * * *")
    town.advance(minutes=6)
    before = town.run(at("12:05"))
    for redriven in (0, REDRIVES_MAX):
        assert watch(town.world, letter(redriven=redriven)) is Watched.NOT_NEEDED
    assert (town.run(at("12:05")), town.next_visible()) == (before, None)


def test_an_unreadable_message_stays_among_the_dead_and_a_sweep_does_not(town: Town) -> None:
    for id_, body in ((1, "{}"), (2, encode(SweepShards((0,))))):
        town.stores.database.run(
            "INSERT INTO dead_letters (id, lane, body, dead_at) VALUES (?,'normal',?,0)", (id_, body)
        )
    assert town.watch() == [Watched.UNREADABLE, Watched.NOT_NEEDED]
    assert [one.body for one in town.stores.inbox.dead(most=10)] == ["{}"]


def test_failures_in_a_row_pause_the_job(town: Town) -> None:
    town.target.answers("job", PERMANENT, PERMANENT, Succeeded(), PERMANENT, PERMANENT, PERMANENT)
    town.put(schedule="*/2 * * * *", pauseAfterFailures=3)
    town.advance(minutes=20)
    assert len(town.calls()) == 6
    assert town.head().status is JobStatus.PAUSED
    assert town.stores.jobs.timeline(job())[-1].actor == "sweephand"


@pytest.mark.parametrize("seconds", [10, 60])
def test_failures_in_a_row_pause_a_job_that_fires_often(town: Town, seconds: int) -> None:
    town.target.rules["job"] = lambda _call: PERMANENT
    town.put(schedule={"every": f"{seconds}s"}, pauseAfterFailures=3)
    town.advance(seconds=seconds * 8)
    assert len(town.calls()) == 3
    assert town.head().status is JobStatus.PAUSED


def test_a_deleted_job_is_not_paused_when_its_last_run_fails(town: Town) -> None:
    def deleted_meanwhile(_call: Call) -> Outcome:
        delete(town.world, job(), actor="test")
        return PERMANENT

    town.target.rules["job"] = deleted_meanwhile
    town.put(schedule="*/2 * * * *", pauseAfterFailures=1)
    town.advance(minutes=5)
    assert [one.state for one in town.runs()][:1] == [RunState.FAILED]
    assert town.head().status is JobStatus.DELETED


def test_a_batch_that_is_replayed_changes_nothing_and_a_rebuild_equals_the_projection(either: Town) -> None:
    either.put()
    either.advance(minutes=2)
    early = either.runs()
    either.advance(minutes=6)
    late = either.runs()
    day = {"since": START - DAY, "until": START + DAY}
    project(either.world, "late", late)
    project(either.world, "early", early)
    projected = either.stores.views.rows(NS, **day)
    standing = either.stores.views.standing(NS, **day, late_before=START)
    assert standing.counts == {RunState.SUCCEEDED: len(projected)}
    project(either.world, "late", late)
    assert either.stores.views.rows(NS, **day) == projected
    rebuild(either.world, NS)
    assert either.stores.views.rows(NS, **day) == projected
    assert either.stores.views.standing(NS, **day, late_before=START) == standing
    assert [row.state for row in projected] == [RunState.SUCCEEDED]
