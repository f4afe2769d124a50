"""Let a run of several tasks go on: what ended is taken in, what can start starts.

Runs of tasks are put and sent before the vector says so: whoever stops half way has it done again, and nothing twice.
Two who advance one run at the same moment decide the same, and one of them moves the vector.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from msgspec import Struct

from sweephand.domain.dag import ENDED, Graph, byte_of, byte_of_mapped, is_over, state_of
from sweephand.domain.ids import RunKey
from sweephand.domain.job import Job
from sweephand.domain.limits import OVERDUE_GRACE
from sweephand.domain.mapping import instance_id, parts_of
from sweephand.domain.progress import Progress
from sweephand.domain.ready import Decided, Move, ready
from sweephand.domain.reasons import Reason, ReasonCode
from sweephand.domain.run import UNSTARTED, Run, RunState
from sweephand.domain.task import TaskEvent, TaskState
from sweephand.engine.carry import Carried, carry_over, record, tasks_of
from sweephand.engine.complete import follow_up
from sweephand.engine.insist import insist, move
from sweephand.engine.lookup import graph_of, version_of
from sweephand.engine.outputs import known_of
from sweephand.engine.planning import letter_for
from sweephand.ports import World

WAVES_MAX: Final = 2_500
"""How often one execution advances a run: each time takes eight of the 25,000 events that its history may have."""
_ROUNDS_MAX: Final = 50
_PAGE: Final = 500


class Step(StrEnum):
    """What whoever advances a run does next. Part of what the machine is told: never renamed."""

    SLEEP = "sleep"
    """Until it is woken: a task's end will do that."""
    ADVANCE = "advance"
    """It comes again at once."""
    SETTLE = "settle"
    """Every task is over: so is the run."""
    STOP = "stop"
    """It is not its own any more: the run has ended, or a later execution goes on with it."""


class Advanced(Struct, frozen=True):
    """What an advance did, and what comes next."""

    step: Step
    released: int = 0


class _Scene(Struct, frozen=True):
    """A run that is being advanced."""

    world: World
    run: Run
    job: Job
    graph: Graph
    now: datetime


def advance(world: World, key: RunKey, *, token: str, generation: int | None = None, look: bool = False) -> Advanced:
    """Take in what ended, start what can start, and go to sleep under `token` if nothing else has ended meanwhile.

    With `look`, everything is looked at, not only what was noted: what got lost is found. Repeating it at any moment
    decides the same.
    """
    # Before the run: one that is ended from outside says so here, after its end is stored.
    found = world.dags.get(key)
    scene = _scene(world, key)
    if scene is None:
        return Advanced(Step.STOP)
    if scene.run.is_terminal:
        _end_tasks(scene)
        return Advanced(Step.STOP)
    progress = found or begin(world, scene.run, now=scene.now)
    heard = progress.noted if found else None  # whoever ended it before there was a progress could not say so
    look = look or (progress.rev > 0 and progress.waves == 0)  # the execution before this one may have died half way
    released = 0
    for _ in range(_ROUNDS_MAX):
        if generation is not None and generation < progress.generation:
            if world.machines is not None:  # whoever announced the next may have died before it was started
                world.machines.start(key, generation=progress.generation)
            return Advanced(Step.STOP, released)
        absorbed, moves = _absorb(scene, progress, look=look)
        released += moves
        if absorbed is None:  # another came first, maybe to end it: what was put since is not in its vector
            if (scene := _scene(world, key) or scene).run.is_terminal:
                _end_tasks(scene)
                return Advanced(Step.STOP, released)
            progress = world.dags.get(key) or begin(world, scene.run, now=scene.now)
            continue
        progress, look = absorbed, False
        if progress.changed:
            continue
        if is_over(progress.states):
            return Advanced(Step.SETTLE, released)
        if progress.noted != heard and (scene := _scene(world, key) or scene).run.is_terminal:
            _end_tasks(scene)  # whoever ended it found nobody asleep to wake
            return Advanced(Step.STOP, released)
        heard = progress.noted
        if generation is not None and progress.waves >= WAVES_MAX:
            return _hand_on(scene, progress, released)
        if _sleeps(world, progress, token):
            return Advanced(Step.SLEEP, released)
        progress = world.dags.get(key) or progress
    return Advanced(Step.ADVANCE, released)


def _sleeps(world: World, progress: Progress, token: str) -> bool:
    return insist(lambda: world.dags.sleep(progress, token))


def _moves(world: World, before: Progress, after: Progress) -> Progress | None:
    return insist(lambda: world.dags.absorb(before, after))


def begin(world: World, run: Run, *, now: datetime) -> Progress:
    """The progress of a run that has just started, or the one that it has.

    What a rerun takes over is put before: without a progress, whoever comes next does all of it again.
    """
    job = version_of(world, run.key.job, run.version or 0).job
    kept = carry_over(world, run, graph_of(world, run.key.job, run.version or 0, job)) if job is not None else Carried()
    fresh = Progress(run.key, kept.states, now, kept.instances, nonce=world.dice.nonce())
    return insist(lambda: world.dags.begin(fresh))


def next_generation(world: World, progress: Progress, *, now: datetime) -> bool:
    """Have another execution go on with the run: the one before, should it still be there, stops.

    False where somebody else moved it meanwhile. Started before it is announced, it would be told to stop; a stop in
    between is made up for as the death of an execution is.
    """
    after = progress.moved(
        nonce=world.dice.nonce(), generation=progress.generation + 1, waves=0, looked_at=now, changed=progress.changed
    )
    if _moves(world, progress, after) is None:
        return False
    if world.machines is not None:
        world.machines.start(progress.run, generation=after.generation)
    return True


def _hand_on(scene: _Scene, progress: Progress, released: int) -> Advanced:
    handed = next_generation(scene.world, progress, now=scene.now)
    return Advanced(Step.STOP if handed else Step.ADVANCE, released)


def _scene(world: World, key: RunKey) -> _Scene | None:
    run = world.runs.get(key)
    if run is None or run.version is None:
        return None
    job = version_of(world, key.job, run.version).job
    if job is None or not job.is_dag:
        return None
    return _Scene(world, run, job, graph_of(world, key.job, run.version, job), world.clock.now())


# Taking in what ended.


def _absorb(scene: _Scene, progress: Progress, *, look: bool) -> tuple[Progress | None, int]:
    """What the progress is after all that was noted, None where another moved it; and how many tasks were released."""
    first = progress.rev == 0
    look = look or progress.is_crowded
    if not (first or look or progress.changed):
        return progress, 0
    weave = _Weave(scene, progress)
    released = weave.take_in(_ended(scene, progress, look=look), everything=first or look)
    after = progress.moved(
        nonce=scene.world.dice.nonce(),
        states=bytes(weave.states),
        instances={place: bytes(one) for place, one in weave.instances.items()},
        looked_at=scene.now,
        waves=progress.waves + 1,
        changed=frozenset(),
    )
    return _moves(scene.world, progress, after), released


class _Weave:
    """One pass: the vectors as they change."""

    def __init__(self, scene: _Scene, progress: Progress) -> None:
        self._scene = scene
        self.states = bytearray(progress.states)
        self.instances = {place: bytearray(one) for place, one in progress.instances.items()}

    def take_in(self, ended: Sequence[Run], *, everything: bool) -> int:
        """Record what ended, and carry out what that means; how many tasks were released.

        Who advanced before may have died between sending a map's instances and saying that there are any: they are
        recorded once the map is expanded again. So are those that a rerun took over, and a task that was ended by a
        word just before it was released: nobody may say so again.
        """
        released = 0
        while True:
            placed = {run.key for run in ended if self._has_place(run)}
            now, ended = [run for run in ended if run.key in placed], [run for run in ended if run.key not in placed]
            changed = record(self._scene.graph, now, self.states, self.instances)
            decided = self._decided(None if everything else changed)
            created, over = _carry_out(self._scene, decided, self.instances)
            released += created
            ended = [*ended, *over]
            self.states = _stopped(self._scene, decided, self.instances)
            everything = False
            if not any(map(self._has_place, ended)):
                return released

    def _has_place(self, run: Run) -> bool:
        return _has_place(self._scene.graph, run, self.instances)

    def _decided(self, changed: frozenset[int] | None) -> Decided:
        scene = self._scene
        counts = {place: len(one) for place, one in self.instances.items()}
        known = known_of(scene.world, scene.run, scene.job, scene.graph, counts)
        return ready(scene.graph, bytes(self.states), changed, known, instances=sum(counts.values()))


def _ended(scene: _Scene, progress: Progress, *, look: bool) -> list[Run]:
    """The runs of tasks that ended and were noted; with `look`, all that ended, and the others are seen to."""
    if not look:
        keys = [scene.run.key.of_task(task) for task in sorted(progress.changed)]
        return [run for run in scene.world.runs.several(keys) if run.is_terminal]
    ended, overdue = [], []
    for run in tasks_of(scene.world, scene.run.key):
        if run.is_terminal:
            ended.append(run)
        elif _is_overdue(run, scene.now):
            overdue.append(letter_for(run, _job_of(scene, run), now=scene.now))
    scene.world.queue.send(overdue)
    return ended


def _is_overdue(run: Run, now: datetime) -> bool:
    """Whether its message must have been lost: nobody owns it, and its time is long past."""
    if run.lease_is_live(now):
        return False
    due_at = run.wake_at or run.lease_until or run.start_at
    return now - due_at > OVERDUE_GRACE


def _has_place(graph: Graph, run: Run, instances: Mapping[int, bytearray]) -> bool:
    """Whether the vectors have a byte for a task's run: for an instance, once its map is expanded."""
    task, index = parts_of(run.key.task)
    return index is None or graph.named(task) in instances


# Carrying out what was decided.


def _carry_out(scene: _Scene, decided: Decided, instances: dict[int, bytearray]) -> tuple[int, list[Run]]:
    """Put and send the runs of the tasks that were released: how many, and those that are over already."""
    released = [run for made in decided.moves for run in _released(scene, made, instances)]
    if not released:
        return 0, []
    created = insist(lambda: scene.world.runs.create(released))
    # Whoever put it may have died before sending: what is there already is sent again, unless it has begun.
    known = [run.key for run, is_new in zip(released, created, strict=True) if not is_new]
    there = scene.world.runs.several(known) if known else []
    begun = {run.key for run in there if run.state not in UNSTARTED}
    scene.world.queue.send(
        [letter_for(run, _job_of(scene, run), now=scene.now) for run in released if run.key not in begun]
    )
    return created.count(True), [run for run in there if run.is_terminal]


def _released(scene: _Scene, made: Move, instances: dict[int, bytearray]) -> Iterator[Run]:
    if made.event is not TaskEvent.RELEASED:
        return
    task = scene.graph.tasks[made.task].id
    if not made.instances:
        yield _task_run(scene, task, {})
        return
    instances[made.task] = bytearray(len(made.instances))
    for one in made.instances:
        state = TaskState.QUEUED if one.skipped is None else TaskState.SKIPPED
        instances[made.task][one.index] = byte_of(state)
        if one.skipped is None:
            yield _task_run(scene, instance_id(task, one.index), {"item": one.item, "index": one.index})


def _task_run(scene: _Scene, task: str, params: Mapping[str, Any]) -> Run:
    """A task's run; its own parameters are what only an instance knows, the others are the whole run's."""
    run, now = scene.run, scene.now
    return Run(
        run.key.of_task(task),
        run.fire_at,
        now,
        trigger=run.trigger,
        created_at=now,
        params=params,
        state=RunState.QUEUED,
        changed_at=now,
        version=run.version,
        nonce=scene.world.dice.nonce(),
    )


def _job_of(scene: _Scene, run: Run) -> Job:
    task, _ = parts_of(run.key.task)
    return scene.job.of_task(scene.graph.tasks[scene.graph.named(task)])


# Ending what must not go on.


def _stopped(scene: _Scene, decided: Decided, instances: dict[int, bytearray]) -> bytearray:
    """The vector as decided; a task that was to be cancelled before it began, and has begun, goes on, and so does an
    instance of a mapped one."""
    states = bytearray(decided.states)
    reasons = {made.task: made.reason for made in decided.moves if made.event is TaskEvent.CANCELLED}
    if not reasons:
        return states
    ended: list[Run] = []
    names = [name for place in reasons for name in _names_of(scene.graph, place, instances)]
    for run in scene.world.runs.several([scene.run.key.of_task(name) for name in names]):
        place = scene.graph.named(parts_of(run.key.task)[0])
        after = _cancel(scene, run, reasons[place], only=UNSTARTED)
        if after.is_terminal:
            ended.append(after)
        else:
            states[place] = byte_of(TaskState.QUEUED)
    record(scene.graph, ended, states, instances)
    for place in reasons.keys() & instances.keys():
        states[place] = byte_of_mapped(Counter(map(state_of, instances[place])))
    return states


def _end_tasks(scene: _Scene) -> None:
    """The run is over, and its tasks may not be: none of them starts, and what runs is fenced.

    Whoever advanced it while it ended may have put one since the vector was closed, so they are always looked at.
    """
    reason = Reason(ReasonCode.CANCELLED, f"the run {scene.run.state}")
    while True:
        progress = scene.world.dags.get(scene.run.key)
        for run in tasks_of(scene.world, scene.run.key):
            _cancel(scene, run, reason)
        if progress is None or is_over(progress.states):
            return
        states, instances = bytearray(progress.states), {n: bytearray(one) for n, one in progress.instances.items()}
        ended = [run for run in tasks_of(scene.world, scene.run.key) if _has_place(scene.graph, run, instances)]
        record(scene.graph, ended, states, instances)
        cancelled = byte_of(TaskState.CANCELLED)
        after = progress.moved(
            nonce=scene.world.dice.nonce(),
            states=bytes(byte if byte in ENDED else cancelled for byte in states),
            instances={place: bytes(one) for place, one in instances.items()},
            looked_at=scene.now,
            changed=frozenset(),
        )
        if _moves(scene.world, progress, after) is not None:
            return


def _names_of(graph: Graph, place: int, instances: Mapping[int, bytearray]) -> list[str]:
    task = graph.tasks[place].id
    if place not in instances:
        return [task]
    return [instance_id(task, index) for index in range(len(instances[place]))]


def _cancel(scene: _Scene, run: Run, reason: Reason | None, *, only: frozenset[RunState] | None = None) -> Run:
    """The task's run as it is then: over, by this or before; with `only`, one in another state is let be.

    Nobody is told: who cancels it writes its end into the vector.
    """
    current = run
    while not current.is_terminal and (only is None or current.state in only):
        why = reason or Reason(ReasonCode.CANCELLED, "")
        after = current.cancelled(why, now=scene.now, nonce=scene.world.dice.nonce())
        if move(scene.world, current, after):
            follow_up(scene.world, after, is_heard=True)
            return after
        current = scene.world.runs.get(run.key) or after
    return current
