"""Holds the invariants of a simulated world against what its store accepted and what its target saw."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

from sweephand.domain.dag import Graph, compiled, state_of
from sweephand.domain.ids import JobKey, RunKey, run_id_of_fire
from sweephand.domain.job import CatchupPolicy, Change, Guarantee, Job, JobEvent
from sweephand.domain.ledger import Dropped
from sweephand.domain.mapping import instance_id
from sweephand.domain.progress import Progress
from sweephand.domain.reasons import ReasonCode
from sweephand.domain.run import ACTIVE, RUN_LIFECYCLE, UNSTARTED, Run, RunState, Trigger
from sweephand.domain.schedule import Schedule
from tests.dags.scripts import Script
from tests.simulation.cast import NAMESPACE, SKEW, Effect
from tests.simulation.judge import Case
from tests.simulation.record import Record, Step

BLUR = 2 * SKEW + timedelta(seconds=5)


@dataclass(frozen=True)
class Stretch:
    """What was in force since <= t < until, worked out here once more; `freed` is the resume that ended a pause."""

    since: datetime
    until: datetime
    schedule: Schedule | None
    paused: bool
    freed: Change | None


@dataclass
class Checker:
    """Everything that is known at the end of a seed."""

    stores: Any
    record: Record
    effects: Sequence[Effect]
    triggered: dict[str, set[RunKey]]
    pool_slots: int
    end: datetime
    scripts: Mapping[str, Script]
    audited: bool
    """Without an auditor, a run that was planned, never sent, and then edited away stays planned: nobody owes it."""
    fires: int = 0

    def violations(self) -> list[str]:
        """What does not hold, in words."""
        found: list[str] = []
        for head in self.stores.jobs.heads(NAMESPACE, limit=1000):
            found += self._fires_of(head.key)
            found += self._room_of(head.key)
        for key, steps in self.record.steps.items():
            found += self._life_of(key, steps)
            if self._is_dag(steps[-1].run):
                found += self._tasks_of(steps[-1].run)
        found += self._effects()
        found += self._triggers()
        found += self._pool()
        return found

    # I1, I2, I7, I9, I12: every fire has one fate, and nothing started that was not owed.

    def _fires_of(self, key: JobKey) -> Iterator[str]:
        changes: list[Change] = self.stores.jobs.timeline(key)
        runs: dict[str, Run] = {run.key.run_id: run for run in self.stores.runs.of_job(key, limit=100_000)}
        stretches = list(self._stretches(key, changes))
        dropped: list[Dropped] = self.stores.runs.dropped(
            key, since=datetime.min.replace(tzinfo=self.end.tzinfo), until=self.end
        )
        still_paused = bool(stretches) and stretches[-1].paused and stretches[-1].until == self.end
        owed: dict[str, Stretch] = {}
        for stretch in stretches:
            if stretch.schedule is None:
                continue
            for fire_at in stretch.schedule.fires(
                stretch.since - timedelta(microseconds=1), stretch.until - timedelta(microseconds=1)
            ):
                owed[run_id_of_fire(fire_at)] = stretch
                self.fires += 1
                yield from self._fate(
                    key, fire_at, runs.get(run_id_of_fire(fire_at)), stretch, dropped, changes, still_paused
                )
        for run in runs.values():
            yield from self._was_owed(run, owed.get(run.key.run_id), changes)
            is_moot = run.state is RunState.PLANNED and run.key.run_id not in owed and not self.audited
            if (
                not run.is_terminal
                and not is_moot
                and not (still_paused and run.trigger is Trigger.SCHEDULE and run.state in UNSTARTED)
            ):
                yield f"I7 {run.key} is still {run.state} ({run.reason}) at the end"
            if run.state in (RunState.SKIPPED, RunState.VOID, RunState.FAILED) and run.reason is None:
                yield f"I12 {run.key} is {run.state} without a reason"

    def _fate(
        self,
        key: JobKey,
        fire_at: datetime,
        run: Run | None,
        stretch: Stretch,
        dropped: Sequence[Dropped],
        changes: Sequence[Change],
        still_paused: bool,
    ) -> Iterator[str]:
        if self._near(changes, fire_at) or (stretch.paused and stretch.freed is None and still_paused):
            return
        if run is None and not any(one.first <= fire_at <= one.last for one in dropped):
            yield f"I1 {key} has neither run nor reason for {fire_at}"
        if run is not None and run.state is RunState.VOID:
            yield f"I2 {run.key} is void although the schedule in force named it"
        if run is not None and _was_skipped_as_paused(run) and not stretch.paused:
            yield f"I9 {run.key} was skipped as paused although its time was not in a pause"

    def _was_owed(self, run: Run, stretch: Stretch | None, changes: Sequence[Change]) -> Iterator[str]:
        first = next((step for step in self.record.steps.get(run.key, ()) if step.run.state is RunState.RUNNING), None)
        if first is None:
            return
        if first.at + SKEW + timedelta(seconds=1) < run.start_at:
            yield f"I2 {run.key} started at {first.at}, before its time {run.start_at}"
        if run.trigger is not Trigger.SCHEDULE or self._near(changes, run.fire_at) or self._near(changes, run.start_at):
            return
        if stretch is None:
            yield f"I2 {run.key} started although no schedule in force named {run.fire_at}"
        elif stretch.paused and (stretch.freed is None or stretch.freed.catchup in (None, CatchupPolicy.NONE)):
            yield f"I9 {run.key} started although its time fell in a pause that nobody made up for"
        elif stretch.paused and stretch.freed and first.at + BLUR < stretch.freed.at:
            yield f"I9 {run.key} started at {first.at}, during the pause of its time"

    def _stretches(self, key: JobKey, changes: Sequence[Change]) -> Iterator[Stretch]:
        paused = False
        for number, change in enumerate(changes):
            if change.event in (JobEvent.PAUSED, JobEvent.RESUMED, JobEvent.DELETED):
                paused = change.event is JobEvent.PAUSED
            until = changes[number + 1].at if number + 1 < len(changes) else self.end
            job = self.stores.jobs.version(key, change.version).job
            freed = next(
                (one for one in changes[number + 1 :] if one.event in (JobEvent.RESUMED, JobEvent.DELETED)), None
            )
            yield Stretch(change.at, until, job.schedule if job else None, paused, freed if paused else None)

    # I3, I4, I5: one owner, one completion, nothing after the end.

    def _life_of(self, key: RunKey, steps: Sequence[Step]) -> Iterator[str]:
        arrows = {(state, target) for (state, _), target in RUN_LIFECYCLE.arrows.items()}
        for before, after in pairwise(steps):
            old, new = before.run, after.run
            if new.rev != old.rev + 1:
                yield f"I4 {key} went from revision {old.rev} to {new.rev}: a write was overwritten"
            if (old.state, new.state) not in arrows:
                yield f"I5 {key} went from {old.state} to {new.state}"
            if new.state is RunState.RUNNING and new.attempt > old.attempt:
                yield from self._claim(key, before, after)
            if (
                old.state is RunState.RUNNING
                and new.state in (RunState.SUCCEEDED, RunState.RETRYING)
                and after.by != old.owner
                and not self._is_dag(new)
                and not _is_said(new)
            ):
                yield f"I3 {key} was completed by {after.by} while {old.owner} owned it"
        if any(step.run.rev == 0 for step in steps[1:]):
            yield f"I1 {key} was created twice"

    def _claim(self, key: RunKey, before: Step, after: Step) -> Iterator[str]:
        old, new = before.run, after.run
        if new.epoch != old.epoch + 1:
            yield f"I4 {key} was claimed with epoch {new.epoch} after {old.epoch}"
        if old.state is RunState.RUNNING and old.lease_until is not None:
            truly_until = old.lease_until - before.skew
            if after.at + BLUR < truly_until:
                yield f"I4 {key} was claimed at {after.at}, long before the lease ended at {truly_until}"

    # I8: tasks start, or are skipped, as the rules say of those they need, and none outlives its run.

    def _tasks_of(self, run: Run) -> Iterator[str]:
        tasks: list[Run] = self.stores.runs.tasks(run.key, limit=100_000)
        for task in tasks:
            if not task.is_terminal and run.is_terminal:
                yield f"I7 {task.key} is still {task.state} ({task.reason}) although its run {run.state}"
        progress = self.stores.dags.get(run.key)
        if run.is_terminal and progress is not None:
            script = self.scripts[run.key.job.name]
            yield from Case(
                script, run, _vector(compiled(self._job_of(run)), progress), tasks, self.record.steps
            ).offences()

    # I6: effects against attempts.

    def _effects(self) -> Iterator[str]:
        per_attempt = Counter((effect.run, effect.epoch) for effect in self.effects)
        per_run = Counter(effect.run for effect in self.effects)
        for (key, epoch), times in per_attempt.items():
            if times > 1:
                yield f"I6 {key} was executed {times} times under epoch {epoch}"
        for key, times in per_run.items():
            run: Run = self.stores.runs.get(key)
            guarantee = self._job_of(run).guarantee
            if times > run.attempt:
                yield f"I6 {key} had {times} effects in {run.attempt} attempts"
            if guarantee is Guarantee.AT_MOST_ONCE and times > 1:
                yield f"I6 {key} is at most once and had {times} effects"
            if guarantee is Guarantee.EFFECTIVELY_ONCE:
                yield from self._apart(key)
        for key, steps in self.record.steps.items():
            end = steps[-1].run
            if end.state is RunState.SUCCEEDED and not per_run[key] and not self._is_dag(end) and not _is_said(end):
                yield f"I6 {key} succeeded without an effect"

    def _apart(self, key: RunKey) -> Iterator[str]:
        """An attempt that outlives its lease is the target's fault; others of one run must not overlap."""
        mine = sorted((effect for effect in self.effects if effect.run == key), key=lambda effect: effect.began)
        leases = {step.run.epoch: step for step in self.record.steps[key] if step.run.state is RunState.RUNNING}
        for one, other in pairwise(mine):
            lease = leases[one.epoch]
            within = lease.run.lease_until is not None and one.ended <= lease.run.lease_until - lease.skew
            if within and other.began < one.ended:
                yield f"I6 {key} is effectively once and two attempts overlapped"

    # Room: never more active runs than a job or pool has places.

    def _room_of(self, key: JobKey) -> Iterator[str]:
        limit = self._latest_job(key).active_max
        if limit is None:
            return
        moments = self._moments(lambda run: run.key.job == key and not run.key.task, ACTIVE, lambda _: 1)
        if (most := _peak(moments)) > limit:
            yield f"slots: {key} had {most} active runs, {limit} allowed"

    def _pool(self) -> Iterator[str]:
        def weight(run: Run) -> int:
            return self._latest_job(run.key.job).concurrency.slots

        def uses(run: Run) -> bool:
            return self._latest_job(run.key.job).concurrency.pool is not None and not run.key.task

        moments = self._moments(uses, frozenset({RunState.RUNNING}), weight)
        if (most := _peak(moments)) > self.pool_slots:
            yield f"slots: {most} of the pool's {self.pool_slots} slots were in use"

    def _moments(self, concerns: Any, states: frozenset[RunState], weight: Any) -> list[tuple[datetime, int, int]]:
        found: list[tuple[datetime, int, int]] = []
        for steps in self.record.steps.values():
            if not concerns(steps[0].run):
                continue
            held = False
            for step in steps:
                if (step.run.state in states) != held:
                    held = not held
                    found.append((step.at, 1 if held else 0, weight(step.run) if held else -weight(step.run)))
        return sorted(found)

    def _triggers(self) -> Iterator[str]:
        for token, keys in self.triggered.items():
            if len(keys) > 1:
                yield f"triggering with one key {token} made {len(keys)} runs"

    def _near(self, changes: Sequence[Change], at: datetime) -> bool:
        """Whether clocks that are off may put a change on either side of this moment."""
        return any(
            change.at - BLUR <= at <= max(change.at, self.record.changed.get((change.key, change.at), change.at)) + BLUR
            for change in changes
        )

    def _latest_job(self, key: JobKey) -> Job:
        """Edits never change a job's policies here, so any version that is not a tombstone serves."""
        job: Job = self.stores.jobs.version(key, 1).job
        return job

    def _job_of(self, run: Run) -> Job:
        job: Job = self.stores.jobs.version(run.key.job, run.version).job
        return job

    def _is_dag(self, run: Run) -> bool:
        return run.version is not None and not run.key.task and self._job_of(run).is_dag


def _vector(graph: Graph, progress: Progress) -> dict[str, str]:
    """The states of tasks and instances, as whoever advanced the run last has left them."""
    found = {task.id: str(state_of(byte)) for task, byte in zip(graph.tasks, progress.states, strict=True)}
    for place, states in progress.instances.items():
        found |= {instance_id(graph.tasks[place].id, n): str(state_of(byte)) for n, byte in enumerate(states)}
    return found


def _is_said(run: Run) -> bool:
    """Whether somebody said how it ends, or another run has done it."""
    words = (ReasonCode.MARKED, ReasonCode.CANCELLED)
    return run.rerun_of is not None or (run.reason is not None and run.reason.code in words)


def _was_skipped_as_paused(run: Run) -> bool:
    return run.state is RunState.SKIPPED and run.reason is not None and run.reason.code is ReasonCode.PAUSED


def _peak(moments: list[tuple[datetime, int, int]]) -> int:
    most = used = 0
    for _, _, step in moments:
        used += step
        most = max(most, used)
    return most
