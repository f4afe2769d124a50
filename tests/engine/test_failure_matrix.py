"""The failure matrix of the requirements (004-FX1 to FX6), one test a cell; `test_every_fault` tries every call."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from sweephand.calls import Call, Outcome, Succeeded
from sweephand.domain.ids import RunKey
from sweephand.domain.run import Run, RunState
from sweephand.engine.claim import claim
from sweephand.engine.complete import complete
from sweephand.engine.heartbeat import heartbeat
from sweephand.engine.project import project, rebuild
from sweephand.engine.put import put
from sweephand.engine.trigger import trigger
from sweephand.errors import Conflict, StaleEpoch, StaleVersion
from sweephand.ports import World
from tests.engine.faults import Fault, dying_before, failing_at, with_another
from tests.engine.world import NS, START, TRANSIENT, Crash, Town, at, dies, job, run_key

RETRY = {"attempts": 3, "backoff": "fixed", "delay": "1m"}
DAY = timedelta(days=1)


def edit(world: World, schedule: str, expected: int) -> None:
    put(world, NS, {"name": "job", "command": "true", "schedule": schedule}, actor="bob", expected=expected)


def due(town: Town, **more: object) -> RunKey:
    """A run that nobody has claimed yet."""
    town.put(**{"schedule": None, "timeout": "1m", **more})  # type: ignore[arg-type]
    return trigger(town.world, job()).key


def owned(town: Town, **more: object) -> RunKey:
    """A run that a worker owns which says nothing."""
    town.target.answers("job", dies)
    key = due(town, **more)
    town.drive()
    assert town.run(key).epoch == 1
    return key


def claims(town: Town, world: World, run: Run) -> Run | None:
    version = town.stores.jobs.version(job(), 1)
    return claim(world, run, version.job, version=1, now=town.clock.at)


def rows(town: Town) -> list[tuple[str, str]]:
    found = town.stores.views.rows(NS, since=START - DAY, until=START + DAY)
    return [(str(row.run), str(row.state)) for row in found]


# FX1: update of a schedule.


def test_fx1_retry_an_edit_sent_twice_is_one_version(town: Town) -> None:
    town.put()
    edit(
        failing_at(town.world, "jobs.change", Fault.UNHEARD), "*/3 * * * *", 1
    )  # the answer was lost, and asked for again
    with pytest.raises(StaleVersion):
        edit(town.world, "*/3 * * * *", 1)
    assert town.head().version == 2


def test_fx1_competing_writers_the_stale_edit_loses(town: Town) -> None:
    town.put()
    with pytest.raises(Conflict):
        edit(with_another(town.world, "jobs.change", lambda: edit(town.world, "*/3 * * * *", 1)), "*/2 * * * *", 1)
    town.advance(minutes=7)
    assert list(town.fates()) == ["12:03", "12:06"]


def test_fx1_crash_after_commit_the_edit_is_in_force(town: Town) -> None:
    town.put()
    with pytest.raises(Crash):
        edit(dying_before(town.world, "jobs.advance"), "*/3 * * * *", 1)
    town.advance(minutes=7)
    assert town.fates() == {"12:03": "fired", "12:06": "fired"}


def test_fx1_publish_failure_the_status_lags_and_the_truth_does_not(town: Town) -> None:
    town.put()
    town.advance(minutes=6)
    assert rows(town) == []  # nothing was projected
    assert town.run(at("12:05")).state is RunState.SUCCEEDED
    rebuild(town.world, NS)
    assert len(rows(town)) == 1


# FX2: marking a schedule due.


def test_fx2_retry_a_sweep_again_marks_nothing_twice(town: Town) -> None:
    town.put()
    town.clock.at = town.head().plan_at or START
    created = [town.sweep().created, town.sweep().created]
    assert created[0] > 0
    assert created[1] == 0


def test_fx2_competing_sweepers_the_second_loses_the_cursor(town: Town) -> None:
    town.put()
    town.clock.at = town.head().plan_at or START

    def rival() -> None:
        town.stores.database.run("UPDATE shards SET until = NULL", ())
        assert town.sweep(town.another()).lost_races == 0

    assert town.sweep(with_another(town.world, "jobs.advance", rival)).lost_races == 1
    assert town.head().rev == 2


def test_fx2_crash_the_next_sweep_does_it(town: Town) -> None:
    town.put()
    town.clock.at = town.head().plan_at or START
    with pytest.raises(Crash):
        town.sweep(dying_before(town.world, "jobs.advance"))
    before = town.head().planned_upto
    town.clock.at += timedelta(minutes=1)
    town.sweep()
    assert town.head().planned_upto > before


# FX3: creating a run.


def test_fx3_retry_a_run_put_again_is_one_run(town: Town) -> None:
    put_again = failing_at(town.world, "runs.create", Fault.UNHEARD)
    put(put_again, NS, {"name": "job", "command": "true", "schedule": "*/5 * * * *"}, actor="ann", expected=None)
    town.advance(minutes=6)
    assert [call.run for call in town.calls()] == [run_key(at("12:05"))]


def test_fx3_competing_writers_one_run_per_fire(town: Town) -> None:
    town.put()
    town.clock.at = town.head().plan_at or START

    def rival() -> None:
        town.stores.database.run("UPDATE shards SET until = NULL", ())
        assert town.sweep(town.another()).created > 0

    assert town.sweep(with_another(town.world, "runs.create", rival)).created == 0
    assert len({run.key for run in town.runs()}) == len(town.runs())


def test_fx3_crash_after_commit_the_run_survives_and_starts(town: Town) -> None:
    town.put()
    town.clock.at = town.head().plan_at or START
    with pytest.raises(Crash):
        town.sweep(dying_before(town.world, "queue.send"))
    town.advance(minutes=20)
    assert not town.holes()
    assert all(run.is_terminal for run in town.runs() if run.start_at <= town.clock.at)


def test_fx3_publish_failure_a_view_that_missed_the_run_is_rebuilt(town: Town) -> None:
    town.put()
    town.advance(minutes=6)
    project(town.world, "half", town.runs()[:1])
    town.advance(minutes=5)
    rebuild(town.world, NS)
    assert len(rows(town)) == 2


# FX4: claiming a run.


def test_fx4_retry_a_claim_whose_answer_was_lost_is_ones_own(town: Town) -> None:
    run = town.run(due(town))
    claimed = claims(town, failing_at(town.world, "runs.move", Fault.UNHEARD), run)
    assert claimed == town.run(run.key)
    assert claimed is not None
    assert claimed.epoch == 1


def test_fx4_competing_workers_one_holder(town: Town) -> None:
    run = town.run(due(town))
    winner, loser = claims(town, town.another("one"), run), claims(town, town.another("two"), run)
    assert (winner and winner.owner, loser) == ("one", None)
    assert town.run(run.key).owner == "one"


def test_fx4_crash_after_commit_the_lease_ends_and_the_run_is_claimed_again(town: Town) -> None:
    key = owned(town)
    town.advance(minutes=2)
    assert (town.run(key).state, town.run(key).epoch) == (RunState.SUCCEEDED, 2)


def test_fx4_stale_holder_a_claim_on_an_old_reading_loses(town: Town) -> None:
    run = town.run(due(town))
    town.target.answers("job", dies)
    town.drive()
    assert claims(town, town.world, run) is None
    assert town.run(run.key).epoch == 1


# FX5: completing or failing a run.


def test_fx5_retry_a_report_sent_twice_is_accepted_once(town: Town) -> None:
    key = owned(town)
    first = complete(failing_at(town.world, "runs.move", Fault.UNHEARD), key, epoch=1, outcome=Succeeded(1))
    assert complete(town.world, key, epoch=1, outcome=Succeeded(2)) == first
    assert town.run(key).output == 1


def test_fx5_competing_reports_the_stale_one_loses(town: Town) -> None:
    key = owned(town)
    report = with_another(
        town.world, "runs.move", lambda: complete(town.another(), key, epoch=1, outcome=Succeeded("first"))
    )
    assert complete(report, key, epoch=1, outcome=Succeeded("second")).output == "first"


def test_fx5_crash_after_commit_the_result_stands(town: Town) -> None:
    key = owned(town, concurrency={"runs": 1})
    with pytest.raises(Crash):
        complete(dying_before(town.world, "slots.get"), key, epoch=1, outcome=Succeeded(1))
    town.advance(minutes=5)
    assert (town.run(key).output, len(town.calls())) == (1, 1)
    trigger(town.world, job())
    town.drive()
    assert town.runs()[-1].state is RunState.SUCCEEDED  # the dead worker's place was taken over


def test_fx5_publish_failure_the_result_is_stored_and_shown_later(town: Town) -> None:
    key = owned(town)
    project(town.world, "running", town.runs())
    complete(town.world, key, epoch=1, outcome=Succeeded())
    assert rows(town)[0][1] == "running"
    rebuild(town.world, NS)
    assert rows(town)[0][1] == "succeeded"


@pytest.mark.parametrize("word", ["complete", "fail", "heartbeat"])
def test_fx5_stale_holder_a_worker_that_lost_its_lease_cannot_say_a_word(town: Town, word: str) -> None:
    key = owned(town)
    town.target.answers("job", dies)
    town.advance(minutes=2)
    words: dict[str, Callable[[], Run]] = {
        "complete": lambda: complete(town.world, key, epoch=1, outcome=Succeeded()),
        "fail": lambda: complete(town.world, key, epoch=1, outcome=TRANSIENT),
        "heartbeat": lambda: heartbeat(town.world, key, epoch=1, lease=DAY),
    }
    before = town.run(key)
    with pytest.raises(StaleEpoch):
        words[word]()
    assert (town.run(key), before.epoch) == (before, 2)


# FX6: retrying a run.


def test_fx6_retry_a_failure_reported_twice_is_one_retry(town: Town) -> None:
    key = owned(town, retry=RETRY)
    first = complete(town.world, key, epoch=1, outcome=TRANSIENT)
    assert complete(town.world, key, epoch=1, outcome=TRANSIENT) == first
    town.advance(minutes=5)
    assert (town.run(key).failures, len(town.calls())) == (2, 2)


def test_fx6_competing_deliveries_of_a_retry_make_one_attempt(town: Town) -> None:
    key = owned(town, retry=RETRY)
    complete(town.world, key, epoch=1, outcome=TRANSIENT)
    town.clock.at += timedelta(minutes=1)
    retrying = town.run(key)
    assert claims(town, town.another("one"), retrying) is not None
    assert claims(town, town.another("two"), retrying) is None
    assert town.run(key).epoch == 2


@pytest.mark.parametrize("call", ["queue.send", "runs.move"])
def test_fx6_crash_delays_the_retry_and_the_next_worker_makes_it(town: Town, call: str) -> None:
    key = owned(town, retry=RETRY)
    with pytest.raises(Crash):
        complete(dying_before(town.world, call), key, epoch=1, outcome=TRANSIENT)
    town.advance(minutes=5)
    assert (town.run(key).state, town.run(key).epoch) == (RunState.SUCCEEDED, 2)


def test_fx6_stale_holder_a_failure_of_a_lost_attempt_changes_nothing(town: Town) -> None:
    def fails_late(_call: Call) -> Outcome:
        town.clock.at += timedelta(seconds=91)
        town.drive(town.another("next"))
        return TRANSIENT

    town.target.answers("job", fails_late)
    key = due(town, retry=RETRY)
    assert "fenced" in town.drive()
    town.advance(minutes=5)
    assert (town.run(key).state, len(town.calls())) == (RunState.SUCCEEDED, 2)
