"""Tasks that wait: for a moment, or for another job's run. Each look is short, and nobody works between two of them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from sweephand.domain.duration import format_duration, parse_duration
from sweephand.domain.fields import instant
from sweephand.domain.ids import JobKey, JobName, run_id_of_fire
from sweephand.domain.retry import Failure, FailureClass
from sweephand.domain.run import Run, RunState
from sweephand.domain.templates import resolve
from sweephand.engine.complete import TIMEOUT
from sweephand.errors import InvalidInput
from sweephand.messages import Again, Elsewhere
from sweephand.ports import Call, Cancellable, Clock, Outcome, Runs, Succeeded, Target

KINDS: Final = frozenset({"wait", "sensor"})
"""What is looked for here, and never reaches the target that works."""

EVERY: Final = timedelta(minutes=1)
"""How often a sensor looks, unless it says otherwise."""
FOR_ALL: Final = timedelta(days=1)
"""How long a sensor looks altogether, unless it says otherwise."""
WITHIN: Final = timedelta(days=1)
"""How old the other job's run may be, unless the sensor says otherwise."""
_LOOKED_AT: Final = 100
_A_MOMENT: Final = timedelta(seconds=1)


class Looking:
    """A target that waits, in front of the one that works."""

    def __init__(self, target: Target, runs: Runs, clock: Clock) -> None:
        self._target = target
        self._runs = runs
        self._clock = clock

    def execute(self, call: Call) -> Outcome | Elsewhere:
        try:
            match call.task.kind:
                case "wait":
                    return self._wait(call)
                case "sensor":
                    return self._sense(call)
                case _:
                    return self._target.execute(call)
        except InvalidInput as refused:
            return Failure("InvalidInput", f"{refused.path}: {refused.message}", FailureClass.PERMANENT)

    def cancel(self, call: Call) -> None:
        """A look is over at once: only what the target does can be stopped."""
        if isinstance(self._target, Cancellable):
            self._target.cancel(call)

    def _wait(self, call: Call) -> Outcome:
        spec, now = _resolved(call), self._clock.now()
        if spec.get("until") is not None:
            until = instant(spec["until"], "wait.until")
        else:
            until = _begun_at(call, now) + parse_duration(spec["for"], path="wait.for")
        if now >= until:
            return Succeeded()
        return Again(until - now, f"until {_shown(until)}")

    def _sense(self, call: Call) -> Outcome:
        """A run of the other job, not older than `within` before this run's own fire, that has come to the state."""
        now, spec = self._clock.now(), _resolved(call)
        wanted = spec.get("state") or "succeeded"
        key = JobKey(call.run.key.job.namespace, JobName(spec["job"]))
        since = call.run.fire_at - _duration(spec, "within", WITHIN)
        oldest, newest = run_id_of_fire(since), run_id_of_fire(now + _A_MOMENT)
        for run in self._runs.of_job(key, since=oldest, until=newest, limit=_LOOKED_AT):
            if _has_come(run, wanted):
                return Succeeded({"runId": run.key.run_id, "state": str(run.state), "output": run.output})
        nothing = f"no run of {key.name} since {_shown(since)} has {wanted}"
        altogether = _duration(spec, "timeout", FOR_ALL)
        left = _begun_at(call, now) + altogether - now
        if left <= timedelta(0):
            # The next attempt would begin where this one ends: none is made.
            message = f"It did not come within {format_duration(altogether)}: {nothing}"
            return Failure(TIMEOUT, message, FailureClass.PERMANENT)
        return Again(min(_duration(spec, "every", EVERY), left), nothing)


def _shown(at: datetime) -> str:
    return at.isoformat(timespec="seconds").replace("+00:00", "Z")


def _has_come(run: Run, wanted: str) -> bool:
    if wanted == "ended":
        return run.is_terminal and run.state is not RunState.VOID
    return run.state == wanted


def _begun_at(call: Call, now: datetime) -> datetime:
    return call.run.started_at or now


def _resolved(call: Call) -> Mapping[str, Any]:
    known = {"params": call.params, "run": call.context}
    resolved: Mapping[str, Any] = resolve(dict(call.task.spec), known, call.task.kind)
    return resolved


def _duration(spec: Mapping[str, Any], name: str, default: timedelta) -> timedelta:
    given = spec.get(name)
    return default if given is None else parse_duration(given, path=f"sensor.{name}")
