"""The settings in which each verb is carried out while something goes wrong."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any, Final

from sweephand.calls import Call, Outcome, Succeeded
from sweephand.domain.backfill import BackfillKey, Wanted
from sweephand.domain.events import Event
from sweephand.domain.job import CatchupPolicy
from sweephand.domain.reruns import Marks
from sweephand.domain.task import TaskState
from sweephand.engine.audit import audit
from sweephand.engine.backfill import backfill, see_to_backfills
from sweephand.engine.backfills import (
    backfills_of,
    cancel_backfill,
    pause_backfill,
    resume_backfill,
    start_backfill,
)
from sweephand.engine.cancel import cancel
from sweephand.engine.complete import complete
from sweephand.engine.delete import delete
from sweephand.engine.heartbeat import heartbeat
from sweephand.engine.mark import Verdict, mark
from sweephand.engine.occur import occur
from sweephand.engine.pause import pause
from sweephand.engine.project import project, rebuild
from sweephand.engine.publish import publish_outside
from sweephand.engine.put import put
from sweephand.engine.rerun import rerun
from sweephand.engine.resume import resume
from sweephand.engine.rollback import rollback
from sweephand.engine.share import put_pool
from sweephand.engine.tick import tick
from sweephand.engine.trigger import trigger
from sweephand.engine.watch import watch
from sweephand.messages import Again, AttemptRun, encode
from sweephand.ports import DeadLetter, Lane, World
from tests.engine.faults import Story, void
from tests.engine.world import (
    HOLD,
    NS,
    PERMANENT,
    RUN_LANES,
    START,
    TRANSIENT,
    Town,
    at,
    dies,
    job,
    run_key,
)

_DONE: Final = Marks("ann", {"main": TaskState.SUCCEEDED})
RETRY: Final = {"attempts": 3, "backoff": "fixed", "delay": "1m"}


def steps(*them: Callable[[Town], object]) -> Callable[[Town], None]:
    """One after the other."""

    def all_of_them(town: Town) -> None:
        for step in them:
            step(town)

    return all_of_them


def _put(world: World, schedule: str, expected: int | None, **more: object) -> None:
    document = {"name": "job", "command": "true", "schedule": schedule, **more}
    put(world, NS, document, actor="ann", expected=expected)


def _running(town: Town) -> None:
    """A job in its eighth minute."""
    town.put()
    town.advance(minutes=7)


def _owing(town: Town) -> None:
    """Fires were missed, and the job wants them all."""
    town.put(catchup="all")
    town.advance(minutes=7)
    town.sleep_through(minutes=40)


def _resume(catchup: CatchupPolicy, _town: Town, world: World) -> None:
    resume(world, job(), catchup=catchup, actor="ann")


def _until_its_lease_ends(town: Town) -> None:
    town.advance(to=at("12:15:29"))
    town.clock.at = at("12:15:30")


def _blackout(policy: str) -> dict[str, Any]:
    closed = {"from": at("12:00").isoformat(), "to": at("12:15").isoformat(), "policy": policy}
    return {"cron": "5 12 * * *", "blackouts": [closed]}


def _deliver(town: Town, world: World) -> None:
    """One worker deals with the run messages that are visible now."""
    for lane in RUN_LANES:
        for delivery in town.stores.inbox.receive(lane, most=10, hold=HOLD):
            town.deliver(world, delivery)


def _due(town: Town, until: str, **more: Any) -> None:
    """A job whose next message is visible now and not yet dealt with."""
    town.put(**{"schedule": "*/5 * * * *", "timeout": 60, **more})
    town.advance(to=at(until) - timedelta(seconds=1))
    town.clock.at = at(until)


def _claimed(town: Town, **more: Any) -> None:
    """A run whose worker has claimed it and works on."""
    town.target.answers("job", dies)
    town.put(schedule="5 12 * * *", timeout="10m", **more)
    town.advance(minutes=5)


def _complete(outcome: Outcome) -> Story:
    return Story(
        lambda town: _claimed(town, retry=RETRY),
        lambda _town, world: complete(world, run_key(at("12:05")), epoch=1, outcome=outcome),
    )


def _outage(town: Town) -> None:
    town.put(catchup={"policy": "latest"})
    town.advance(minutes=7)
    town.sleep_through(minutes=40)
    tick(town.world)


def _paused(town: Town) -> None:
    """Paused within the look-ahead: some of the held fires are runs already, some are not."""
    town.put()
    town.advance(minutes=7)
    town.pause()
    town.advance(minutes=25)


def _sweep(town: Town, world: World) -> None:
    for delivery in town.stores.inbox.receive(Lane.SWEEP, most=10, hold=HOLD):
        town.deliver(world, delivery)


def _ticked(town: Town) -> None:
    town.put(schedule="*/3 * * * *")
    town.put("other", "*/7 * * * *")
    town.advance(to=at("12:14:30"))
    town.clock.at = at("12:15:10")
    tick(town.world)


def _long_wait(town: Town) -> None:
    """A retry that is farther away than a message's delay."""
    town.target.answers("job", TRANSIENT)
    town.put(schedule="5 12 * * *", retry={"attempts": 2, "backoff": "fixed", "delay": "30m"})
    town.advance(minutes=5)
    town.sleep_through(minutes=30)
    town.clock.at = at("12:36:05")
    tick(town.world)


def _crowded(town: Town, **more: Any) -> None:
    """One run holds the job's only place, and the next fire's message is visible."""
    town.target.answers("job", dies)
    town.put(schedule="5,10 12 * * *", timeout="12m", **more)
    town.advance(to=at("12:09:59"))
    town.clock.at = at("12:10:00")


def _pooled(town: Town) -> None:
    put_pool(town.world, NS, "printers", 1, expected=0)
    _due(town, "12:05", schedule="5 12 * * *", overlap="queue", concurrency={"pool": "printers"})


def _waiter(town: Town) -> None:
    """A run is executing and another waits for its place."""
    town.target.answers("job", dies)
    town.put(schedule="5,10 12 * * *", timeout="12m", overlap="queue")
    town.advance(to=at("12:10:30"))


def _hiccup(town: Town) -> None:
    """Every first attempt fails, whoever makes it and however often; the second succeeds."""
    town.target.rules["job"] = lambda call: TRANSIENT if call.run.failures == 1 else Succeeded()


def _failing(town: Town) -> None:
    town.target.rules["job"] = lambda _call: PERMANENT
    _due(town, "12:10", pauseAfterFailures=2)


def _edited(town: Town) -> None:
    """The job was edited after its next fire was planned; the message of that fire is visible."""
    town.put()
    town.advance(to=at("12:07"))
    town.put(schedule="*/7 * * * *", expected=1)
    town.advance(to=at("12:09:59"))
    town.clock.at = at("12:10:00")


def _stuck(town: Town) -> None:
    """Every message and hint was lost."""
    town.put()
    town.advance(minutes=7)
    town.stores.database.run("DELETE FROM messages", ())
    town.stores.database.run("DELETE FROM due", ())
    town.sleep_through(minutes=15)


def _audit_again(town: Town) -> None:
    """What was not overdue the first time."""
    town.advance(minutes=10)
    town.audit()


def _dead_letter(redriven: int) -> DeadLetter:
    return DeadLetter("1", encode(AttemptRun(run_key(at("12:05")), redriven=redriven)), Lane.NORMAL, START)


def _undelivered(town: Town) -> None:
    town.put(schedule="5 12 * * *")
    town.advance(minutes=4)
    town.stores.database.run("DELETE FROM messages", ())
    town.clock.at = at("12:06")


def _viewed(town: Town, world: World) -> None:
    project(world, "batch", town.runs())
    rebuild(world, NS)


def _one_upstream(town: Town) -> None:
    """A success that nobody has followed yet, and a job that comes after it."""
    town.put("up", "5 12 * * *")
    town.put("job", {"after": ["up"]})
    town.advance(to=at("12:06"))


def _needing(town: Town) -> None:
    """A fire whose message is visible, and which waits for a job whose fire before it has failed."""
    town.target.answers("up", PERMANENT)
    town.put("up", "4 12 * * *")
    _due(town, "12:05", schedule={"cron": "5 12 * * *", "needs": ["up"]})


def _redone(town: Town) -> None:
    """What it waits for is done again, and nobody has followed that."""
    rerun(town.world, run_key(at("12:04"), "up"))
    town.drive()


def _waits(town: Town) -> None:
    _needing(town)
    town.drive()
    town.advance(seconds=30)


def _its_timer_comes(town: Town) -> None:
    town.clock.at = at("12:06")


def _two_upstreams(town: Town) -> None:
    """A gate with two successes before it."""
    town.put("left", "5 12 * * *")
    town.put("right", "6 12 * * *")
    town.put("job", {"after": ["left", "right"]})
    town.advance(to=at("12:07"))


def _one_day(town: Town, **rule: Any) -> None:
    """Two successes of one day that nobody has followed yet."""
    town.put("left", "5 12 * * *")
    town.put("right", "6 12 * * *")
    town.put("job", {"after": rule})
    town.advance(to=at("12:07"))


def _updated(town: Town) -> None:
    """Two updates of datasets that nobody has followed yet, and jobs that subscribe to both, and to any."""
    town.put("left", "5 12 * * *", publishes=["one", "two"])
    town.put("right", "6 12 * * *", publishes=["three"])
    town.put("job", {"datasets": ["one", "three"]})
    town.put("any", {"datasets": {"any": ["two", "three"]}})
    town.advance(to=at("12:07"))


def _subscribed(town: Town) -> None:
    town.put("job", {"datasets": ["feed"]})
    town.put("other", {"datasets": {"any": ["feed", "more"]}})


def _follow(town: Town, world: World) -> None:
    town.follow("up", "left", "right", world=world)


def _second_look(town: Town) -> None:
    town.audit()
    town.advance(minutes=1)


def _listeners(town: Town) -> None:
    for name in ("one", "two"):
        town.put(name, {"events": [{"source": "shop", "match": {"paid": True}}]})


def _offered(town: Town, **more: Any) -> None:
    """A run that waits for an external worker."""
    town.put_external(**{"timeout": "10m", **more})
    town.advance(to=at("12:05:30"))


def _workers_come(town: Town) -> None:
    """One a minute, for a while."""
    for _ in range(6):
        town.advance(minutes=1)
        town.work()


def _worker_died(town: Town, **more: Any) -> None:
    """A worker took the run and was not heard of again; its lease's timer is visible."""
    _offered(town, **more)
    town.lease(worker="walter")
    town.advance(to=at("12:06:29"))
    town.clock.at = at("12:06:31")


def _pooled_workers(town: Town) -> None:
    put_pool(town.world, NS, "printers", 1, expected=0)
    _offered(town, schedule="4,5 12 * * *", concurrency={"pool": "printers"})


def _done(town: Town, world: World) -> None:
    town.work(world)


def _task(name: str, *needs: str, **more: Any) -> dict[str, Any]:
    return {"id": name, "needs": list(needs), "run": {"command": ["true"]}, "timeout": "1m", **more}


def _graph(town: Town, *tasks: dict[str, Any], **more: Any) -> None:
    """A run of tasks whose message is visible; by default `c` needs `a` and `b`, which end at the same moment."""
    found = tasks or (_task("a"), _task("b"), _task("c", "a", "b"))
    document = {"name": "job", "schedule": "5 12 * * *", "tasks": list(found), **more}
    put(town.world, NS, document, actor="ann", expected=None)
    town.advance(to=at("12:05") - timedelta(seconds=1))
    town.clock.at = at("12:05")


def _by_task(town: Town, **answers: Callable[[Call], Outcome]) -> None:
    """The others succeed."""

    def rule(call: Call) -> Outcome:
        answer = answers.get(call.run.key.task)
        return Succeeded() if answer is None else answer(call)

    town.target.rules["job"] = rule


def _under_way(town: Town) -> None:
    """A run of tasks of which one has ended, and one is tried again in ten minutes."""
    _by_task(town, a=lambda call: TRANSIENT if call.run.failures == 1 else Succeeded())
    _graph(town, retry={"attempts": 2, "backoff": "fixed", "delay": "10m"})
    town.advance(to=at("12:06"))


def _drive(town: Town, world: World) -> None:
    town.drive(world, lanes=RUN_LANES)


def _mark(_town: Town, world: World, task: str = "a") -> None:
    mark(world, run_key(at("12:05")), task, Verdict(TaskState.SKIPPED, "ann"))


_OF_A_DAY: Final = partial(_one_day, all=["left", "right"], window="sameDay", timezone="Europe/Berlin")
_ANY_OF_TWO: Final = partial(_one_day, any=["left", "right"])


def _early(collapse: bool = False) -> Wanted:
    """The three days before the job was there."""
    return Wanted(START - timedelta(days=3), START, max_active=2, collapse=collapse)


def _ask(_town: Town, world: World, *, collapse: bool = False) -> None:
    start_backfill(world, job(), _early(collapse), actor="ann", idempotency_key="once")


def _asked_for(town: Town) -> None:
    """A backfill of three runs, two of which are queued."""
    town.put(schedule="5 12 * * *")
    _ask(town, town.world)


def _one_ended(town: Town) -> None:
    """One of the two runs under way has ended, and nobody knows yet."""
    _asked_for(town)
    (delivery,) = town.stores.inbox.receive(Lane.LOW, most=1, hold=HOLD)
    town.deliver(town.world, delivery)


def _own(town: Town) -> BackfillKey:
    return backfills_of(town.world, job())[0].key


def _filled(town: Town) -> None:
    """Somebody looks after backfills, and follows what ends: now, and when a lost message was made up for."""
    for minutes in (0, 0, 0, 7, 0, 0):
        town.advance(minutes=minutes)
        see_to_backfills(town.world)
        town.drive()
        town.follow("job")


CLIENTS: Final = {
    "put a new job": Story(lambda _town: None, lambda _town, world: _put(world, "*/5 * * * *", None)),
    "put an edit": Story(_running, lambda _town, world: _put(world, "*/3 * * * *", 1)),
    "put an edit after an outage": Story(_owing, lambda _town, world: _put(world, "*/7 * * * *", 1, catchup="none")),
    "put an edit of a paused job": Story(
        _paused,
        lambda _town, world: _put(world, "*/3 * * * *", 1),
        then=steps(lambda town: town.resume(catchup="all")),
    ),
    "put a deleted job again": Story(
        steps(_running, lambda town: delete(town.world, job(), actor="ann")),
        lambda _town, world: _put(world, "*/3 * * * *", None),
    ),
    "rollback": Story(
        steps(
            _running, lambda town: town.put(schedule="*/2 * * * *", expected=1), lambda town: town.advance(minutes=2)
        ),
        lambda _town, world: rollback(world, job(), 1, actor="ann", expected=2),
    ),
    "pause": Story(
        _running, lambda _town, world: pause(world, job(), actor="ann"), then=steps(lambda town: town.resume())
    ),
    "resume with none": Story(_paused, partial(_resume, CatchupPolicy.NONE)),
    "resume with latest": Story(_paused, partial(_resume, CatchupPolicy.LATEST)),
    "resume with all": Story(_paused, partial(_resume, CatchupPolicy.ALL)),
    "delete": Story(_running, lambda _town, world: delete(world, job(), actor="ann")),
    "delete a paused job": Story(_paused, lambda _town, world: delete(world, job(), actor="ann")),
    "trigger": Story(
        steps(lambda town: town.put(schedule=None)),
        lambda _town, world: trigger(world, job(), idempotency_key="once"),
    ),
    "put a job that comes after another": Story(
        steps(lambda town: town.put("up", "8 12 * * *")),
        lambda _town, world: void(
            put(
                world, NS, {"name": "job", "command": "true", "schedule": {"after": ["up"]}}, actor="ann", expected=None
            )
        ),
        then=steps(lambda town: town.advance(minutes=10), lambda town: town.follow("up")),
    ),
    "put a job that publishes and subscribes": Story(
        steps(lambda town: town.put("up", "8 12 * * *", publishes=["rows"])),
        lambda _town, world: void(
            put(
                world,
                NS,
                {"name": "job", "command": "true", "schedule": {"datasets": ["rows"]}, "publishes": ["more"]},
                actor="ann",
                expected=None,
            )
        ),
        then=steps(lambda town: town.advance(minutes=10), lambda town: town.follow("up")),
    ),
    "rerun under a key": Story(
        steps(lambda town: town.put(schedule="5 12 * * *"), lambda town: town.advance(minutes=7)),
        lambda _town, world: rerun(world, run_key(at("12:05")), idempotency_key="again"),
    ),
    "rerun that counts as done under a key": Story(
        steps(
            lambda town: town.target.answers("job", PERMANENT),
            lambda town: town.put(schedule="5 12 * * *"),
            lambda town: town.advance(minutes=7),
        ),
        lambda _town, world: rerun(world, run_key(at("12:05")), idempotency_key="again", marks=_DONE),
    ),
    "ask for a backfill": Story(steps(lambda town: town.put(schedule="5 12 * * *")), _ask, then=_filled),
    "ask for a collapsed backfill": Story(
        steps(lambda town: town.put(schedule="5 12 * * *")), partial(_ask, collapse=True), then=_filled
    ),
    "cancel a planned run": Story(_running, lambda _town, world: cancel(world, run_key(at("12:10")), actor="ann")),
    "cancel a running run that another waits for": Story(
        _waiter, lambda _town, world: cancel(world, run_key(at("12:05")), actor="ann")
    ),
    "cancel a run of tasks": Story(
        _under_way, lambda _town, world: cancel(world, run_key(at("12:05")), actor="ann"), calm_m=30
    ),
    "mark a task": Story(_under_way, _mark, calm_m=30),
    "mark a task that waits": Story(_under_way, partial(_mark, task="c"), calm_m=30),
}
"""What people and clients do: they may give up, or repeat it."""

REPORTS: Final = {
    "complete": _complete(Succeeded({"rows": 3})),
    "complete with a failure that is tried again": _complete(TRANSIENT),
    "complete with a failure that is not": _complete(PERMANENT),
    "complete a look that found nothing": _complete(Again(timedelta(minutes=3), "no file")),
    "complete a look that found nothing for long": _complete(Again(timedelta(minutes=17), "no file")),
    "complete a run that another waits for": Story(
        _waiter, lambda _town, world: complete(world, run_key(at("12:05")), epoch=1, outcome=Succeeded())
    ),
    "something happens elsewhere": Story(
        _listeners, lambda _town, world: occur(world, NS, Event("shop", "order", {"paid": True}, "order-1"))
    ),
    "cancel a backfill": Story(
        _asked_for, lambda town, world: cancel_backfill(world, _own(town), actor="ann"), then=_filled
    ),
    "pause a backfill": Story(
        _one_ended,
        lambda town, world: pause_backfill(world, _own(town), actor="ann"),
        then=steps(_filled, lambda town: resume_backfill(town.world, _own(town), actor="ann"), _filled),
    ),
    "resume a backfill": Story(
        steps(_one_ended, lambda town: pause_backfill(town.world, _own(town), actor="ann")),
        lambda town, world: resume_backfill(world, _own(town), actor="ann"),
        then=_filled,
    ),
    "follow a success": Story(_one_upstream, _follow),
    "follow the successes of a gate": Story(_two_upstreams, _follow),
    "follow the successes of a day": Story(_OF_A_DAY, _follow),
    "follow a success that a fire waits for": Story(
        steps(_waits, _redone), lambda town, world: town.follow("up", world=world)
    ),
    "follow any of two successes": Story(_ANY_OF_TWO, _follow),
    "follow updates of datasets": Story(_updated, _follow),
    "update a dataset from outside": Story(
        _subscribed, lambda _town, world: void(publish_outside(world, NS, "feed", "file-1"))
    ),
    "pull and report": Story(_offered, _done, then=_workers_come),
    "pull and report in a pool": Story(_pooled_workers, _done, then=_workers_come),
    "pull and report what is tried again": Story(
        steps(_hiccup, partial(_offered, retry=RETRY)), _done, then=_workers_come
    ),
    "heartbeat": Story(
        _claimed, lambda _town, world: heartbeat(world, run_key(at("12:05")), epoch=1, lease=timedelta(minutes=11))
    ),
    "watch a dead letter": Story(_undelivered, lambda _town, world: watch(world, _dead_letter(0))),
    "watch poison": Story(_undelivered, lambda _town, world: watch(world, _dead_letter(3))),
    "audit": Story(_stuck, lambda _town, world: audit(world, NS), then=_audit_again),
    "project and rebuild": Story(_running, _viewed),
}
"""What is repeated until it is heard."""

DELIVERIES: Final = {
    "go on with a backfill": Story(_one_ended, lambda town, world: backfill(world, _own(town)), then=_filled),
    "look after backfills": Story(_one_ended, lambda _town, world: see_to_backfills(world), then=_filled),
    "follow a success, or leave it to the audit": Story(_one_upstream, _follow, then=_second_look),
    "follow the successes of a gate, or leave it to the audit": Story(_two_upstreams, _follow, then=_second_look),
    "follow the successes of a day, or leave it to the audit": Story(_OF_A_DAY, _follow, then=_second_look),
    "follow any of two successes, or leave it to the audit": Story(_ANY_OF_TWO, _follow, then=_second_look),
    "follow updates of datasets, or leave it to the audit": Story(_updated, _follow, then=_second_look),
    "attempt that offers": Story(
        steps(
            lambda town: town.put_external(startDeadline="30m"),
            lambda town: town.advance(to=at("12:04:59")),
            lambda town: setattr(town.clock, "at", at("12:05")),
        ),
        _deliver,
        then=_workers_come,
    ),
    "attempt of a lost external worker's run": Story(_worker_died, _deliver, then=_workers_come),
    "attempt of a lost external worker's run, at most once": Story(
        partial(_worker_died, guarantee="at-most-once"), _deliver, then=_workers_come
    ),
    "attempt of an external worker's run that took too long": Story(
        partial(_worker_died, timeout=50), _deliver, then=_workers_come
    ),
    "sweep": Story(_ticked, _sweep),
    "sweep after an outage": Story(_outage, _sweep),
    "sweep a long wait": Story(_long_wait, _sweep),
    "attempt": Story(partial(_due, until="12:05"), _deliver),
    "attempt in a pool": Story(_pooled, _deliver),
    "attempt that fails and is tried again": Story(steps(_hiccup, partial(_due, until="12:05", retry=RETRY)), _deliver),
    "attempt that fails and is tried much later": Story(
        steps(_hiccup, partial(_due, until="12:05", schedule="5 12 * * *", retry=RETRY | {"delay": "20m"})),
        _deliver,
        calm_m=40,
    ),
    "attempt that skips, since another is active": Story(partial(_crowded, overlap="skip"), _deliver),
    "attempt that waits for a place": Story(partial(_crowded, overlap="queue"), _deliver, calm_m=30),
    "attempt that replaces": Story(partial(_crowded, overlap="replace"), _deliver),
    "attempt that waits for a blackout's end": Story(
        partial(_due, until="12:05", schedule=_blackout("hold")), _deliver
    ),
    "attempt that a blackout skips": Story(partial(_due, until="12:05", schedule=_blackout("skip")), _deliver),
    "attempt of a fire that waits for another job": Story(_needing, _deliver, then=_redone),
    "attempt of a fire that had to wait for another job": Story(steps(_waits, _redone, _its_timer_comes), _deliver),
    "attempt of a fire that waited in vain": Story(
        steps(
            lambda town: _due(town, "12:05", schedule={"cron": "5 12 * * *", "needs": {"jobs": ["up"], "timeout": 60}}),
            lambda town: town.drive(),
            lambda town: town.advance(to=at("12:05:59")),
            _its_timer_comes,
        ),
        _deliver,
    ),
    "attempt that an edit made void": Story(_edited, _deliver),
    "attempt of a lost worker's run": Story(steps(_claimed, _until_its_lease_ends), _deliver),
    "attempt of a lost worker's run, at most once": Story(
        steps(partial(_claimed, guarantee="at-most-once"), _until_its_lease_ends), _deliver
    ),
    # In seven minutes nobody looks after it: each end of a task has brought it on.
    "a run of tasks from its start to its end": Story(_graph, _drive, calm_m=7),
    # Whether `b` has begun when `a` has failed is as it may be.
    "a run of tasks that a failure stops": Story(
        steps(lambda town: _by_task(town, a=lambda _call: PERMANENT), partial(_graph, onFailure="stop")),
        _drive,
        same=("jobs", "runs", "ledger"),
    ),
    "a run of a mapped task": Story(lambda town: _graph(town, _task("load", map={"over": [1, 2]})), _drive, calm_m=7),
    # A crash before the pause leaves it to the next failure, so one run more may fail.
    "attempt whose failure pauses the job": Story(_failing, _deliver, same=("jobs",)),
}
"""What comes back by itself: a message that was not dealt with is delivered again."""

ANEW: Final = {
    "rerun": Story(
        steps(lambda town: town.put(schedule="5 12 * * *"), lambda town: town.advance(minutes=7)),
        lambda _town, world: rerun(world, run_key(at("12:05"))),
    ),
}
"""What makes something new each time, so that nobody repeats it blindly."""
