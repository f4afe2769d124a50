"""Tasks that wait: for a moment, a run, a person's word, or what a target looks for. Each look is short, and nobody
works between two of them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from msgspec.structs import replace

from sweephand.calls import Abandoning, Call, Cancellable, Outcome, Progressing, Skipped, Succeeded, Target
from sweephand.domain.definition import PARAMS_BYTES_MAX
from sweephand.domain.duration import format_duration, parse_duration
from sweephand.domain.fields import instant, json_bytes
from sweephand.domain.ids import JobKey, JobName, run_id_of_fire
from sweephand.domain.output import Kept
from sweephand.domain.retry import Failure, FailureClass
from sweephand.domain.run import Run, RunState
from sweephand.domain.sensor import looked_for
from sweephand.domain.templates import resolve
from sweephand.engine.complete import TIMEOUT
from sweephand.engine.subrun import JOB, start_subrun
from sweephand.engine.whereabouts import APPROVAL
from sweephand.errors import Conflict, InvalidInput, NotFound, Unavailable
from sweephand.messages import Again, Elsewhere
from sweephand.ports import World

KINDS: Final = frozenset({"wait", "sensor", APPROVAL, JOB})
"""What waits. Looks at what is outside are made by the target that works, and each is a call of its own."""

EVERY: Final = timedelta(minutes=1)
"""How often a sensor looks, unless it says otherwise."""
FOR_ALL: Final = timedelta(days=1)
"""How long a sensor looks altogether, unless it says otherwise."""
WITHIN: Final = timedelta(days=1)
"""How old the other job's run may be, unless the sensor says otherwise."""
LOOK_WITHIN: Final = timedelta(seconds=30)
"""How long one look at what is outside may take."""
_ASKED_AGAIN: Final = timedelta(days=1)
"""How often an approval without an end is looked at: what ends it is a person's word, not a look."""
_LOOKED_AT: Final = 100
_A_MOMENT: Final = timedelta(seconds=1)


class Looking:
    """A target that waits, in front of the one that works."""

    def __init__(self, target: Target, world: World) -> None:
        self._target = target
        self._world = world
        self._runs = world.runs
        self._clock = world.clock

    def execute(self, call: Call) -> Outcome | Elsewhere:
        try:
            match call.task.kind:
                case "wait":
                    return self._wait(call)
                case "sensor":
                    return self._sense(call)
                case "approval":
                    return self._ask(call)
                case "job":
                    return self._start(call)
                case _:
                    return self._target.execute(call)
        except InvalidInput as refused:
            return Failure("InvalidInput", f"{refused.path}: {refused.message}", FailureClass.PERMANENT)

    def cancel(self, call: Call) -> None:
        """A look is over at once: only what the target does can be stopped."""
        if isinstance(self._target, Cancellable):
            self._target.cancel(call)

    def progress(self, call: Call) -> int | None:
        """Who looks or waits is nowhere in between."""
        return self._target.progress(call) if isinstance(self._target, Progressing) else None

    def abandon(self, call: Call) -> None:
        """What goes on elsewhere between two looks is the target's."""
        if isinstance(self._target, Abandoning):
            self._target.abandon(call)

    def _wait(self, call: Call) -> Outcome:
        spec, now = _resolved(call), self._clock.now()
        if spec.get("until") is not None:
            until = instant(spec["until"], "wait.until")
        else:
            until = _begun_at(call, now) + parse_duration(spec["for"], path="wait.for")
        if now >= until:
            return Succeeded()
        return Again(until - now, f"until {_shown(until)}")

    def _sense(self, call: Call) -> Outcome | Elsewhere:
        """Whether it has come; else another look, until the sensor has looked for long enough."""
        now, spec = self._clock.now(), call.task.spec
        looked = self._look_here(call, now) if looked_for(spec) == "job" else self._look_there(call)
        if not isinstance(looked, Again):
            return looked
        altogether = _duration(spec, "timeout", FOR_ALL)
        left = _begun_at(call, now) + altogether - now
        if left <= timedelta(0):
            # The next attempt would begin where this one ends: none is made.
            message = f"It did not come within {format_duration(altogether)}: {looked.reason}"
            return Failure(TIMEOUT, message, FailureClass.PERMANENT)
        return Again(min(_duration(spec, "every", EVERY), left), looked.reason)

    def _look_there(self, call: Call) -> Outcome | Elsewhere:
        """What the target sees. What may pass by itself is no failed attempt: the next look may fare better."""
        try:
            outcome = self._target.execute(replace(call, timeout=min(call.timeout, LOOK_WITHIN)))
        except Unavailable as error:  # safe: a look that was made unheard has changed nothing
            return Again(timedelta(0), f"the last look had no answer: {error.message}")
        if isinstance(outcome, Failure) and outcome.kind is FailureClass.TRANSIENT:
            return Again(timedelta(0), f"the last look failed: {outcome.error}: {outcome.message}")
        return outcome

    def _look_here(self, call: Call, now: datetime) -> Outcome:
        """A run of the other job, not older than `within` before this run's own fire, that has come to the state."""
        spec = _resolved(call)
        wanted = spec.get("state") or "succeeded"
        key = JobKey(call.run.key.job.namespace, JobName(spec["job"]))
        since = call.run.fire_at - _duration(spec, "within", WITHIN)
        oldest, newest = run_id_of_fire(since), run_id_of_fire(now + _A_MOMENT)
        for run in self._runs.of_job(key, since=oldest, until=newest, limit=_LOOKED_AT):
            if _has_come(run, wanted):
                return Succeeded({"runId": run.key.run_id, "state": str(run.state), "output": _small(run.output)})
        return Again(timedelta(0), f"no run of {key.name} since {_shown(since)} has {wanted}")

    def _ask(self, call: Call) -> Outcome:
        """Until somebody says yes or no, which ends the run; nothing is found out here but that the time is up."""
        spec, now = _resolved(call), self._clock.now()
        asked = asked_for(spec)
        if spec.get("timeout") is None:
            return Again(_ASKED_AGAIN, asked)
        altogether = parse_duration(spec["timeout"], path="approval.timeout")
        left = _begun_at(call, now) + altogether - now
        if left <= timedelta(0):
            message = f"Nobody decided within {format_duration(altogether)}: {asked}"
            return Failure(TIMEOUT, message, FailureClass.PERMANENT)
        return Again(min(left, _ASKED_AGAIN), asked)

    def _start(self, call: Call) -> Outcome:
        """A run of another job, started once; its end is the task's."""
        spec, now = _resolved(call), self._clock.now()
        params = spec.get("params") or {}
        if json_bytes(params) > PARAMS_BYTES_MAX:
            raise InvalidInput(f"They take more than {PARAMS_BYTES_MAX} bytes as JSON.", "job.params")
        try:
            started = start_subrun(self._world, call.run, call.task, params)
        except (Conflict, NotFound) as refused:
            return Failure(type(refused).__name__, refused.message, FailureClass.PERMANENT)
        if spec.get("async"):
            return Succeeded({"jobId": started.key.job.name, "runId": started.key.run_id})
        if started.is_terminal:
            return _came_to(started)
        what = f"run {started.key.run_id} of {started.key.job.name} is {started.state}"
        if call.task.timeout is not None and now >= _begun_at(call, now) + call.task.timeout:
            message = f"It took longer than {format_duration(call.task.timeout)}: {what}"
            return Failure(TIMEOUT, message, FailureClass.PERMANENT)
        return Again(EVERY, what)


def _small(output: Any) -> Any:
    """What another run came to, if it fits into this one; its id says where the rest is."""
    return None if isinstance(output, Kept) else output


def asked_for(spec: Mapping[str, Any]) -> str:
    """Who is to approve of what."""
    who = ", ".join(spec.get("by") or ()) or "an operator"
    message = spec.get("message")
    return f"{who} is asked: {message}" if message else f"{who} is asked"


def _came_to(started: Run) -> Outcome:
    """What the end of the run that a task started means for the task."""
    named = f"run {started.key.run_id} of {started.key.job.name} {started.state}"
    if started.state is RunState.SUCCEEDED:
        return Succeeded(started.output)
    if started.state is RunState.SKIPPED:
        return Skipped(f"{named}: {started.reason}")
    why = started.failure.message if started.failure else str(started.reason or "")
    return Failure("RunFailed", f"{named}: {why}", FailureClass.PERMANENT)


def _shown(at: datetime) -> str:
    return at.isoformat(timespec="seconds").replace("+00:00", "Z")


def _has_come(run: Run, wanted: str) -> bool:
    if wanted == "ended":
        return run.is_terminal and run.state is not RunState.VOID
    return run.state == wanted


def _begun_at(call: Call, now: datetime) -> datetime:
    return call.run.started_at or now


def _resolved(call: Call) -> Mapping[str, Any]:
    resolved: Mapping[str, Any] = resolve(dict(call.task.spec), call.known, call.task.kind)
    return resolved


def _duration(spec: Mapping[str, Any], name: str, default: timedelta) -> timedelta:
    given = spec.get(name)
    return default if given is None else parse_duration(given, path=f"sensor.{name}")
