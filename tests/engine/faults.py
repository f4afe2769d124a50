"""Every call, every fault: carry out a verb once for each port call that it makes, with that one call gone wrong."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from functools import partial
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from sweephand.domain.dag import state_of
from sweephand.domain.ids import JobKey
from sweephand.domain.job import Head, JobStatus
from sweephand.domain.ledger import FireStatus
from sweephand.domain.occasions import Quantity, Window
from sweephand.domain.run import Run, RunState
from sweephand.errors import Conflict, NotFound, Unavailable
from sweephand.ports import Stores, World
from tests.engine.world import NS, START, Crash, Town, town_of

PORTS: Final = (*Stores.__struct_fields__, "target")
READS: Final = frozenset(
    {"head", "heads", "heads_of", "get", "read", "count", "of_job", "dropped", "pages", "version", "timeline", "rows"}
    | {"listed", "deeds", "open", "active"}
)


class Fault(StrEnum):
    """What goes wrong in one call."""

    CRASH = "crash"
    """The caller dies before it."""
    REFUSED = "refused"
    """It has no effect and fails."""
    UNHEARD = "unheard"
    """It has its effect and fails."""
    RIVAL = "rival"
    """Before it, somebody else does the whole of the same."""
    ASLEEP = "asleep"
    """Before it, the caller sleeps for ten minutes, and the world goes on."""


@dataclass
class Trap:
    """Lets the n-th call go wrong, and counts them all."""

    at: int | None
    fault: Fault
    meanwhile: Callable[[], object] = lambda: None
    calls: list[str] = field(default_factory=list)

    def places(self) -> list[tuple[int, str]]:
        """The calls to try; a read that fails is the same as a crash before or after it."""
        silent = READS if self.fault in (Fault.REFUSED, Fault.UNHEARD) else frozenset()
        return [(at, call) for at, call in enumerate(self.calls) if call.partition(".")[2] not in silent]

    def call(self, name: str, verb: str, real: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        self.calls.append(f"{name}.{verb}")
        if self.at != len(self.calls) - 1:
            return real(*args, **kwargs)
        if self.fault is Fault.CRASH:
            raise Crash
        if self.fault is Fault.REFUSED:
            raise Unavailable(f"{name}.{verb} failed.")
        if self.fault is not Fault.UNHEARD:
            self.at = None
            self.meanwhile()
            return real(*args, **kwargs)
        real(*args, **kwargs)
        raise Unavailable(f"{name}.{verb} timed out.")


class Trapped:
    """A port whose calls go through a trap."""

    def __init__(self, name: str, port: Any, trap: Trap) -> None:
        self._name, self._port, self._trap = name, port, trap

    def __getattr__(self, verb: str) -> Callable[..., Any]:
        real = getattr(self._port, verb)
        return lambda *args, **kwargs: self._trap.call(self._name, verb, real, args, kwargs)


def trapped(world: World, trap: Trap) -> World:
    """The world as a process sees it whose calls go through a trap."""
    ports: dict[str, Any] = {name: Trapped(name, getattr(world, name), trap) for name in PORTS}
    return replace(world, owner="victim", versions={}, **ports)


@dataclass
class Moment(Trap):
    """Springs at the n-th call of one name."""

    name: str = ""
    nth: int = 1

    def call(self, name: str, verb: str, real: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        if f"{name}.{verb}" == self.name and self.calls.count(self.name) == self.nth - 1:
            self.at = len(self.calls)
        return super().call(name, verb, real, args, kwargs)


def dying_before(world: World, call: str, *, nth: int = 1) -> World:
    """A process that dies just before a call."""
    return trapped(world, Moment(None, Fault.CRASH, name=call, nth=nth))


def failing_at(world: World, call: str, fault: Fault, *, nth: int = 1) -> World:
    """A process for which one call fails."""
    return trapped(world, Moment(None, fault, name=call, nth=nth))


def with_another(world: World, call: str, meanwhile: Callable[[], object], *, nth: int = 1) -> World:
    """A process before one of whose calls something else happens."""
    return trapped(world, Moment(None, Fault.RIVAL, lambda: void(meanwhile()), name=call, nth=nth))


def void(_answer: object) -> None:
    """Nobody asks for it."""


Act = Callable[[Town, World], object]


class Story(Struct, frozen=True):
    """A verb in its setting: what was before, what is done, what is done a minute later, and how long it settles."""

    prepare: Callable[[Town], None]
    act: Act
    then: Callable[[Town], None] = lambda _town: None
    calm_m: int = 20
    same: tuple[str, ...] = ("jobs", "runs", "tasks", "ledger", "effects")
    """What must be the same at the end."""


@dataclass(frozen=True)
class End:
    """How a story ended: what everybody can see of it."""

    jobs: dict[str, Any]
    runs: dict[str, Any]
    tasks: dict[str, Any]
    ledger: dict[str, Any]
    effects: frozenset[str]


def tell(story: Story, fault: Fault, at: int | None, *, repeats: bool) -> tuple[End, Trap, list[str]]:
    """The story with one call gone wrong: its end, the trap, and what must never be seen at any end."""
    with town_of() as town:
        town.ticks_every = timedelta(minutes=2)
        town.stores.database.run("UPDATE shard_count SET count = 2", ())  # fewer, and so faster, sweeps
        story.prepare(town)
        trap = Trap(at, fault, _meanwhile(story, town, fault))
        failed = _try(story, town, trapped(town.world, trap))
        if failed and repeats:
            _try(story, town, town.world)
        town.advance(minutes=1)
        story.then(town)
        town.advance(minutes=story.calm_m)
        return _end(town), trap, list(_offences(town))


def _meanwhile(story: Story, town: Town, fault: Fault) -> Callable[[], None]:
    if fault is Fault.ASLEEP:
        return lambda: void(town.advance(minutes=10))
    return lambda: void(_try(story, town, town.another("rival")))


def _try(story: Story, town: Town, world: World) -> bool:
    """Whether the act failed so that its caller cannot know what came of it."""
    try:
        story.act(town, world)
    except (Crash, Unavailable):
        return True
    except (Conflict, NotFound):
        return False  # it was done already: by the first try, or by a rival
    return False


def _end(town: Town) -> End:
    now = town.clock.at
    heads = town.stores.jobs.heads(NS, limit=100)
    return End(
        jobs={
            head.key.name: (
                str(head.status),
                head.version,
                tuple((str(change.event), change.version) for change in town.stores.jobs.timeline(head.key)),
            )
            for head in heads
        },
        runs=_runs([run for head in heads for run in town.runs(head.key.name) if run.start_at <= now]),
        tasks={_masked(str(run.key)): _vector(town, run) for head in heads for run in _graphs(town, head)}
        | _runs([task for head in heads for run in _graphs(town, head) for task in town.tasks(run.key)]),
        ledger={head.key.name: _ledger(town, head.key, now) for head in heads},
        effects=frozenset(_masked(call.key) for call in town.target.calls),
    )


def _runs(runs: list[Run]) -> dict[str, Any]:
    """What each run came to; those that only chance tells apart stand side by side."""
    found: dict[str, list[Any]] = {}
    for run in runs:
        came_to = (str(run.state), run.reason and str(run.reason.code), run.version, run.failures)
        found.setdefault(_masked(str(run.key)), []).append(came_to)
    return {key: sorted(them, key=str) for key, them in sorted(found.items())}


def _graphs(town: Town, head: Head) -> list[Run]:
    """The runs of a job of several tasks."""
    version = town.stores.jobs.version(head.key, head.version)
    return town.runs(head.key.name) if version.job is not None and version.job.is_dag else []


def _vector(town: Town, run: Run) -> tuple[str, ...]:
    progress = town.stores.dags.get(run.key)
    return tuple(str(state_of(byte)) for byte in progress.states) if progress is not None else ()


def _ledger(town: Town, key: JobKey, now: datetime) -> tuple[Any, ...]:
    rows = town.ledger(key.name, since=START, until=now)
    return tuple((f"{row.fire_at:%H:%M:%S}", str(row.status), (row.reason or "").partition(":")[0]) for row in rows)


def _masked(text: str) -> str:
    """A triggered run's id holds chance; its place in the story does not."""
    return re.sub(r"\d{8}T\d{6}Z-\w+", "triggered", text)


def _offences(town: Town) -> Iterator[str]:
    """What must never be, whatever went wrong."""
    for (key, epoch), times in Counter((call.run, call.epoch) for call in town.target.calls).items():
        if times > 1:
            yield f"{key} was executed {times} times under epoch {epoch}"
    yield from unfollowed(town)
    for head in town.stores.jobs.heads(NS, limit=100):
        for row in town.ledger(head.key.name):
            if row.status in (FireStatus.MISSING, FireStatus.EXTRA):
                yield f"the ledger calls {head.key.name} at {row.fire_at} {row.status}"
        for run in town.runs(head.key.name):
            late = run.start_at <= town.clock.at and not run.is_terminal and head.status is not JobStatus.PAUSED
            if late:
                yield f"{run.key} is still {run.state} ({run.reason}), due {run.wake_at}, leased {run.lease_until}"
        for run in _graphs(town, head):
            for task in town.tasks(run.key):
                if run.is_terminal and not task.is_terminal:
                    yield f"{task.key} is still {task.state} ({task.reason}), and its run {run.state}"


def unfollowed(town: Town) -> Iterator[str]:
    """What is wrong with the runs of jobs whose first version comes after others."""
    for head in town.stores.jobs.heads(NS, limit=100):
        job = town.stores.jobs.version(head.key, 1).job
        if head.status is JobStatus.DELETED or not job.after or (head.version > 1 and len(job.after) > 1):
            continue
        if job.after_rule.window is Window.SAME_DAY:
            days = Counter(run.params["day"] for run in town.runs(head.key.name) if "day" in run.params)
            yield from (f"{times} runs of {head.key} for {day}" for day, times in days.items() if times > 1)
            continue
        changes = town.stores.jobs.timeline(head.key)
        until = min((change.at for change in changes if change.version > 1), default=town.clock.at)
        used = Counter(pair for run in town.runs(head.key.name) for pair in run.params.get("after", {}).items())
        owed = {
            name: [
                run.key.run_id
                for run in _successes(town, name)
                if run.ended_at and head.created_at <= run.ended_at < until
            ]
            for name in job.after
        }
        yield from (f"{times} runs of {head.key} use {pair}" for pair, times in used.items() if times > 1)
        left = {name: [one for one in owed[name] if not used[name, one]] for name in job.after}
        each_by_itself = len(job.after) == 1 or job.after_rule.quantity is Quantity.ANY
        if each_by_itself and any(left.values()):
            yield f"no run of {head.key} follows {left}"
        if not each_by_itself and all(owed[name] and left[name][-1:] == owed[name][-1:] for name in job.after):
            yield f"no run of {head.key} follows the last successes: {left}"


def _successes(town: Town, name: str) -> list[Run]:
    found = [run for run in town.runs(name) if run.state is RunState.SUCCEEDED]
    return sorted(found, key=lambda run: run.ended_at or START)


def trouble(story: Story, fault: Fault, *, repeats: bool) -> list[str]:
    """What is wrong with the story's end, for every call that goes wrong in it; a caller may do it again then."""
    right, trap, found = tell(story, fault, None, repeats=False)
    assert trap.calls, "nothing is called in this story"
    found = [f"even without faults: {offence}" for offence in found]
    for at, call in trap.places():
        end, _, offences = tell(story, fault, at, repeats=repeats)
        found += [f"{fault} at call {at}, {call}: {offence}" for offence in offences]
        if fault is not Fault.ASLEEP and (differs := difference(right, end, story.same)):
            found.append(f"{fault} at call {at}, {call}: {differs}")
    return found


def half_done(story: Story, fault: Fault) -> list[str]:
    """What a caller that gives up leaves behind, where that is neither nothing nor all of it."""
    right, trap, _ = tell(story, fault, None, repeats=False)
    untouched, _, _ = tell(replace(story, act=lambda _town, _world: None), fault, None, repeats=False)
    found = []
    for at, call in trap.places():
        end, _, offences = tell(story, fault, at, repeats=False)
        found += [f"{fault} at call {at}, {call}: {offence}" for offence in offences]
        if end not in (right, untouched):
            found.append(f"{fault} at call {at}, {call}: neither all ({difference(right, end)}) nor nothing")
    return found


def crossed(story: Story, one: Act, other: Act) -> list[str]:
    """What must never be and is, with all of the other act between two calls of the one, wherever that is."""
    found: list[str] = []
    moment, moments = 0, 1
    while moment < moments:
        with town_of() as town:
            town.ticks_every = timedelta(minutes=2)
            town.stores.database.run("UPDATE shard_count SET count = 2", ())
            story.prepare(town)
            others = replace(story, act=other)
            trap = Trap(moment, Fault.RIVAL, partial(_try, others, town, town.another("rival")))
            _try(replace(story, act=one), town, trapped(town.world, trap))
            story.then(town)
            town.advance(minutes=8)
            if town.head().status is JobStatus.PAUSED:
                town.resume(catchup="latest")
            town.advance(minutes=8)
            found += [f"at call {moment} of {len(trap.calls)}: {offence}" for offence in _offences(town)]
        moment, moments = moment + 1, len(trap.calls)
    return found


def difference(right: End, end: End, parts_of: tuple[str, ...] = Story.same) -> str:
    """Where two ends differ, in short."""
    parts = []
    for name in parts_of:
        one, other = getattr(right, name), getattr(end, name)
        if one == other:
            continue
        if isinstance(one, dict):
            keys = [key for key in {**one, **other} if one.get(key) != other.get(key)]
            parts.append(f"{name}: " + ", ".join(f"{key} {one.get(key)} -> {other.get(key)}" for key in keys))
        else:
            parts.append(f"{name}: without {sorted(one - other)}, with {sorted(other - one)}")
    return "; ".join(parts)
