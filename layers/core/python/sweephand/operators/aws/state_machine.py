"""`stateMachine`: an execution is started, and looked at until it has ended; with `async: true`, started is success.

Nobody works between two looks. The execution has its attempt's name, so a start whose answer was lost, or a worker that
was, finds it again; a retry has another.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any, Final

from sweephand.calls import Call, Outcome, Succeeded
from sweephand.domain.duration import format_duration
from sweephand.domain.fields import json_bytes
from sweephand.domain.limits import OUTPUT_BYTES_MAX
from sweephand.domain.retry import Failure
from sweephand.domain.targets import Arn, Targets
from sweephand.domain.templates import as_text
from sweephand.engine.complete import TIMEOUT
from sweephand.messages import Again
from sweephand.operators.aws.answers import kept
from sweephand.operators.aws.clients import Caller, Clients, made, soon
from sweephand.operators.aws.failures import Failed, permanent
from sweephand.operators.operator import Attempt
from sweephand.ports import Clock

LOOK_LEAST: Final = timedelta(seconds=2)
LOOK_MOST: Final = timedelta(minutes=2)
_NOT_THERE: Final = "ExecutionDoesNotExist"
_THERE: Final = "ExecutionAlreadyExists"
_UNDER_WAY: Final = frozenset({"RUNNING", "PENDING_REDRIVE"})


class StateMachine(Caller):
    """Starts executions, looks after them, and stops those that nobody waits for any more."""

    service, kind = "stepfunctions", "stateMachine"

    def __init__(self, targets: Targets, clients: Clients, clock: Clock) -> None:
        super().__init__(targets, clients)
        self._clock = clock

    def call(self, attempt: Attempt) -> Outcome:
        within = soon(attempt.call)
        client, machine = self.target(attempt, within)
        execution = _execution(machine, attempt.call)
        if attempt.call.task.spec.get("async") is True:
            return Succeeded({"executionArn": self._start(client, machine, attempt) or execution})
        stopped = threading.Event()
        attempt.cancellation.stops_by(stopped.set)
        seen = _seen(client, execution, within)
        if seen is None:
            arn = self._start(client, machine, attempt)
            if arn is not None and ":express:" in arn:
                raise Failed(permanent("ExpressMachine", "An express machine cannot be waited for: say async: true."))
        outcome = _outcome(seen, execution, attempt.call.timeout, self._clock.now())
        if stopped.is_set() and isinstance(outcome, Again):
            outcome = Failure("Cancelled", "The attempt was told to stop.")
        elif not isinstance(outcome, Failure) or outcome.error != TIMEOUT:
            return outcome
        _stop(client, execution, within, outcome)
        return outcome

    def stop(self, attempt: Attempt) -> None:
        """Nobody waits for the execution any more."""
        if attempt.call.task.spec.get("async") is True:
            return
        within = soon(attempt.call)
        client, machine = self.target(attempt, within)
        _stop(client, _execution(machine, attempt.call), within, Failure("Cancelled", "Its run has ended."))

    def _start(self, client: Any, machine: Arn, attempt: Attempt) -> str | None:
        """The ARN of a new execution, or of one that a call before this has started; None where that has ended."""
        try:
            answer = made(
                client,
                "start_execution",
                soon(attempt.call),
                stateMachineArn=str(machine),
                name=execution_name(attempt.call),
                input=as_text(attempt.option("input", {})),
            )
        except Failed as failed:
            if failed.failure.error != _THERE:
                raise
            return None  # safe: it has this attempt's own name
        return str(answer["executionArn"])


def execution_name(call: Call) -> str:
    """The attempt's name, as Step Functions takes one. A worker that was lost is no new attempt of the task's."""
    run = call.run
    return f"{sha256(call.idempotency_key.encode()).hexdigest()}-{run.failures}"


def _execution(machine: Arn, call: Call) -> str:
    """An execution is named without the version or alias of its machine."""
    name = machine.resource.split(":")[1]
    where = f"arn:{machine.partition}:states:{machine.region}:{machine.account}"
    return f"{where}:execution:{name}:{execution_name(call)}"


def _seen(client: Any, execution: str, within: timedelta) -> Mapping[str, Any] | None:
    """The execution as it is; None where there is none. What has just begun may not be seen yet: starting it again
    finds it."""
    try:
        return made(client, "describe_execution", within, executionArn=execution)
    except Failed as failed:
        if failed.failure.error != _NOT_THERE:
            raise
        return None


def _outcome(seen: Mapping[str, Any] | None, execution: str, timeout: timedelta, now: datetime) -> Outcome:
    if seen is None:
        return Again(LOOK_LEAST, "the execution has begun")
    match seen["status"]:
        case status if status in _UNDER_WAY:
            took = now - seen["startDate"]
            if took >= timeout:
                return Failure(TIMEOUT, f"The execution took longer than {format_duration(timeout)}, and was stopped.")
            after = min(max(took / 4, LOOK_LEAST), LOOK_MOST, timeout - took)
            return Again(after, f"the execution is {status.lower().replace('_', ' ')}")
        case "SUCCEEDED":
            return _output(seen, execution)
        case "TIMED_OUT":
            return Failure("TimedOut", "The execution took longer than its machine allows.")
        case "ABORTED":
            return permanent("Aborted", "The execution was stopped by somebody.")
        case _:
            cause = str(seen.get("cause") or "The execution failed.")
            return permanent(str(seen.get("error") or "ExecutionFailed"), cause)


def _output(seen: Mapping[str, Any], execution: str) -> Succeeded:
    """What the machine came to; where that is too long for a run, the execution that has it."""
    output = json.loads(seen.get("output") or "null")
    if json_bytes(output) > OUTPUT_BYTES_MAX:
        return Succeeded({"executionArn": execution})
    return kept(output)


def _stop(client: Any, execution: str, within: timedelta, why: Failure) -> None:
    told = {"error": f"Sweephand.{why.error}", "cause": why.message}
    try:
        made(client, "stop_execution", within, executionArn=execution, **told)
    except Failed as failed:
        if failed.failure.error != _NOT_THERE:
            raise
