"""Two at once: what one does exactly between two steps of the other."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

import pytest

from sweephand.calls import Succeeded
from sweephand.domain.job import CatchupPolicy
from sweephand.domain.run import ACTIVE, RunState
from sweephand.engine.audit import audit
from sweephand.engine.cancel import cancel
from sweephand.engine.complete import complete
from sweephand.engine.delete import delete
from sweephand.engine.pause import pause
from sweephand.engine.put import put
from sweephand.engine.resume import resume
from sweephand.engine.share import put_pool
from sweephand.engine.tick import tick
from sweephand.engine.trigger import trigger
from sweephand.errors import Conflict, StaleVersion
from sweephand.ports import Lane, World
from tests.engine.faults import Act, Fault, Trap, crossed, dying_before, trapped, void, with_another
from tests.engine.stories import CLIENTS, DELIVERIES, REPORTS
from tests.engine.world import HOLD, NS, RUN_LANES, TRANSIENT, Town, at, dies, job, run_key


def deliver(town: Town, world: World) -> list[str]:
    """One worker deals with what is visible now."""
    return [
        town.deliver(world, delivery)
        for lane in RUN_LANES
        for delivery in town.stores.inbox.receive(lane, most=10, hold=HOLD)
    ]


def active(town: Town, *names: str) -> int:
    return sum(run.state in ACTIVE for name in names for run in town.runs(name))


@pytest.mark.parametrize("moment", range(10))
def test_a_run_records_the_version_that_it_runs_whenever_an_edit_comes_between(town: Town, moment: int) -> None:
    town.put(schedule="5 12 * * *", params={"version": 1})
    town.advance(to=at("12:04:59"))
    town.clock.at = at("12:05")
    edit = Trap(moment, Fault.RIVAL, lambda: void(town.put(schedule="5 12 * * *", params={"version": 2}, expected=1)))
    deliver(town, trapped(town.world, edit))
    (call,) = town.calls()
    assert town.run(at("12:05")).version == call.params["version"]


@pytest.mark.parametrize("moment", range(10))
def test_a_run_ends_whenever_its_job_is_deleted_and_though_its_worker_dies(town: Town, moment: int) -> None:
    town.put(schedule="5 12 * * *", timeout=60)
    town.target.answers("job", dies)
    town.advance(to=at("12:04:59"))
    town.clock.at = at("12:05")
    gone = Trap(moment, Fault.RIVAL, lambda: void(delete(town.world, job(), actor="bob")))
    deliver(town, trapped(town.world, gone))
    town.advance(minutes=30)
    assert town.run(at("12:05")).is_terminal


def test_a_holder_that_comes_back_while_it_is_evicted_does_not_make_two(town: Town) -> None:
    town.put(schedule="5,10 12 * * *", timeout="1h", concurrency={"runs": 1})
    town.target.answers("job", dies, dies)
    town.advance(to=at("12:04:59"))
    town.clock.at = at("12:05")
    # The first takes the job's only place and dies before its claim.
    deliver(town, dying_before(town.world, "runs.move"))
    first = town.run(at("12:05"))
    assert first.state is RunState.PLANNED
    hold_back(town, minutes=5)
    town.clock.at = at("12:10")

    def first_comes_back() -> None:
        town.clock.at += timedelta(seconds=1)
        assert deliver(town, town.another("first")) == ["crash"]
        assert town.run(at("12:05")).state is RunState.RUNNING

    deliver(town, with_another(town.world, "slots.swap", first_comes_back))
    assert active(town, "job") == 1


def hold_back(town: Town, *, minutes: float) -> None:
    """Whatever a dead worker held comes back a second later than this."""
    town.stores.database.run(
        "UPDATE messages SET visible_at = visible_at + ? WHERE receives > 0",
        (int((timedelta(minutes=minutes) - HOLD + timedelta(seconds=1)) / timedelta(microseconds=1)),),
    )


def test_a_late_give_back_of_a_failed_attempt_does_not_take_the_next_attempts_place(town: Town) -> None:
    put_pool(town.world, NS, "printers", 1, expected=0)
    pooled: dict[str, Any] = {"concurrency": {"pool": "printers"}, "timeout": "1h"}
    town.put("first", None, retry={"attempts": 2, "backoff": "fixed", "delay": "1s"}, **pooled)
    town.put("second", None, **pooled)
    town.target.answers("first", TRANSIENT, dies)
    town.target.answers("second", dies)
    trigger(town.world, job("first"))

    def next_attempt() -> None:
        town.clock.at += timedelta(seconds=1)
        deliver(town, town.another("quick"))
        assert town.runs("first")[0].state is RunState.RUNNING

    # The first attempt has stored its failure and is about to give its place back (its take was the first look).
    deliver(town, with_another(town.world, "slots.get", next_attempt, nth=2))
    trigger(town.world, job("second"))
    deliver(town, town.another("third"))
    assert active(town, "first", "second") == 1


def test_an_edit_that_beats_a_delete_of_a_paused_job_keeps_what_the_pause_held(town: Town) -> None:
    town.put()
    town.advance(to=at("12:07"))
    town.pause()
    town.advance(to=at("12:21"))
    rival = with_another(town.world, "jobs.change", lambda: town.put(schedule="*/5 * * * *", expected=1))
    try:
        delete(rival, job(), actor="bob", expected=1)
    except StaleVersion:
        town.resume(catchup="all")
    town.advance(minutes=10)
    assert {fire: town.states()[fire] for fire in ("12:10", "12:15", "12:20")} == dict.fromkeys(
        ("12:10", "12:15", "12:20"), "succeeded"
    )


def test_of_two_edits_of_one_version_one_is_refused_and_nothing_of_it_remains(town: Town) -> None:
    town.put()
    rival = with_another(town.world, "jobs.change", lambda: town.put(schedule="*/3 * * * *", expected=1))
    with pytest.raises(Conflict):
        edit(rival, "*/2 * * * *", 1)
    town.advance(minutes=10)
    assert town.head().version == 2
    assert list(town.fates()) == ["12:03", "12:06", "12:09"]
    assert not town.holes()


ACTS: Final[dict[str, Act]] = {
    "edit": lambda town, world: edit(world, "*/7 * * * *", town.head().version),
    "pause": lambda _town, world: pause(world, job(), actor="bob"),
    "resume": lambda _town, world: resume(world, job(), catchup=CatchupPolicy.ALL, actor="bob"),
    "delete": lambda _town, world: delete(world, job(), actor="bob"),
    "deliver": deliver,
    "sweep": lambda town, world: void((tick(world), town.drive(world, lanes=(Lane.SWEEP,)))),
    "complete": lambda _town, world: complete(world, run_key(at("12:05")), epoch=1, outcome=Succeeded()),
    "cancel": lambda _town, world: cancel(world, run_key(at("12:05")), actor="bob"),
    "follow": lambda town, world: town.follow("up", "left", "right", world=world),
    "follow too": lambda town, world: town.follow("right", "up", "left", world=world),
    "audit": lambda _town, world: audit(world, NS),
    "work": lambda town, world: town.work(world),
    "work too": lambda town, world: town.work(world),
    "cancel the next": lambda _town, world: cancel(world, run_key(at("12:10")), actor="bob"),
}
SCENES: Final = {
    "a run is due": ("attempt", ["deliver", "edit", "pause", "delete", "cancel"]),
    "a sweep is due": ("sweep", ["sweep", "edit", "pause", "delete"]),
    "a job is paused": ("resume with all", ["resume", "edit", "delete", "sweep"]),
    "a run has the only place": (
        "attempt that waits for a place",
        ["deliver", "complete", "cancel", "cancel the next"],
    ),
    "a success is new": (
        "follow a success, or leave it to the audit",
        ["follow", "follow too", "audit", "edit", "pause", "delete"],
    ),
    "two successes are new": (
        "follow the successes of a gate, or leave it to the audit",
        ["follow", "follow too", "audit", "edit", "delete"],
    ),
    "a run is on offer": ("pull and report", ["work", "work too", "deliver", "edit", "pause", "delete", "cancel"]),
    "a worker is lost": ("attempt of a lost external worker's run", ["deliver", "work", "audit", "cancel"]),
    "one place and two on offer": ("pull and report in a pool", ["work", "work too", "deliver", "cancel"]),
}
PAIRS: Final = [
    (scene, one, other) for scene, (_, acts) in SCENES.items() for one in acts for other in acts if one != other
]


def edit(world: World, schedule: str, expected: int) -> None:
    put(world, NS, {"name": "job", "command": "true", "schedule": schedule}, actor="bob", expected=expected)


@pytest.mark.parametrize(("scene", "one", "other"), PAIRS)
def test_whatever_comes_between_two_steps_nothing_is_lost_doubled_or_stuck(scene: str, one: str, other: str) -> None:
    story = (CLIENTS | REPORTS | DELIVERIES)[SCENES[scene][0]]
    found = crossed(story, ACTS[one], ACTS[other])
    assert not found, "\n".join(found)
