"""Where tasks run: in the function `execute`, which holds users' code and no right to anything of ours, or in `call`,
which calls AWS services and has the rights that whoever deploys has listed; or, with an agent, on Fargate.

A short task is waited for. A long one is handed to the machine that waits for it and reports its outcome, since a
function that sleeps is paid for: as much as the machine is after some ten seconds. Whether a task is short is known
from its time-out, or from how long the job's last run took; one that is not known is handed over.

Nothing is called twice under one epoch: a call that may have been made is never repeated, and an execution has its
attempt's name.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from functools import cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from sweephand.aws.calls import asking, code_of
from sweephand.aws.fargate import LAUNCHED, Fargate
from sweephand.aws.gathering import Gathering
from sweephand.calls import Call, Outcome
from sweephand.domain.retry import Failure, FailureClass
from sweephand.domain.sensor import SENSOR, operator_of
from sweephand.domain.targets import AWS_KINDS
from sweephand.errors import InvalidInput, Unavailable
from sweephand.messages import Elsewhere, Unstarted
from sweephand.orders import decode_outcome, encode_call
from sweephand.ports import Runs
from sweephand.secrets import Secrets
from sweephand.topology import CALL, EXECUTE, Function, Names

if TYPE_CHECKING:
    from types_boto3_lambda.client import LambdaClient
    from types_boto3_stepfunctions.client import SFNClient

_THROTTLED: Final = frozenset({"TooManyRequestsException", "ThrottlingException", "ExecutionLimitExceeded"})
_TIMED_OUT: Final = ("Sandbox.Timedout", "States.Timeout", "Task timed out")
_MESSAGE_CHARS_MAX: Final = 1_000
ORDER_BYTES_MAX: Final = 200_000
"""Step Functions carries 262,144 bytes from state to state, of which the outcome needs some. Beyond, it ends an
execution without a word: not even its own catchers hear of it."""

SHORT_TIMEOUT: Final = timedelta(minutes=1)
"""A task that may not take longer is always waited for."""
SHORT: Final = timedelta(seconds=10)
"""A job whose last run took no longer is waited for too."""
_LOOKED_AT: Final = 3

_FUNCTIONS: Final[Mapping[str, Function]] = dict.fromkeys({*AWS_KINDS, "sensor.s3"}, CALL)
"""Where each operator is; any other is in `execute`."""
_SMALL: Final = frozenset({"command", "python", "http"})
"""Kinds of which several can run in one invocation."""
_AT_ONCE: Final = frozenset({"sqs", "sns", "event", "stateMachine", SENSOR})
"""Kinds that only hand something over, or look: they are short, whatever their time-out."""


class Execute:
    """The `Target` of a deployment."""

    def __init__(
        self,
        functions: LambdaClient,
        machines: Callable[[], SFNClient],
        runs: Runs,
        names: Names,
        *,
        machine: str,
        secrets: Secrets,
        gathers: bool = False,
        fargate: Fargate | None = None,
    ) -> None:
        """`gathers`: short tasks that are delivered together run in one invocation."""
        self._functions = functions
        self._make_machines = machines
        self._runs = runs
        self._names = names
        self._machine = machine
        self._secrets = secrets
        self._gathering = Gathering(self._invoke_all) if gathers else None
        self._fargate = fargate

    @cached_property
    def _machines(self) -> SFNClient:
        """Made for the first long task: most cold starts have none."""
        return self._make_machines()

    def execute(self, call: Call) -> Outcome | Elsewhere:
        """Run the task, or have it run; what is refused for want of room was not begun."""
        if call.lease is not None:
            return self._fargate.launch(call) if self._fargate else _nowhere()
        try:
            if self._gathering and call.task.kind in _SMALL and call.timeout <= SHORT_TIMEOUT:
                return self._gathering.execute(call)
            return self._invoke(call) if is_short(self._runs, call) else self._start(call)
        except _Full as full:
            return Unstarted(f"AWS had no room for it: {full}.")

    def abandon(self, call: Call) -> None:
        """Have what the call waits for stopped, by the function that can; Lambda sees to it that it is."""
        if call.task.kind in LAUNCHED:
            if self._fargate is not None:
                self._fargate.stop(call)
            return
        order = json.dumps({"abandon": encode_call(call)})
        with asking(f"abandon {call.run.key}"):
            self._functions.invoke(FunctionName=self._function(call), InvocationType="Event", Payload=order)

    def _function(self, call: Call) -> str:
        return self._names.function(_FUNCTIONS.get(operator_of(call.task), EXECUTE))

    def _invoke(self, call: Call) -> Outcome:
        answered = self._ask(call, encode_call(call))
        return answered if isinstance(answered, Failure) else outcome_of(answered[0])

    def _invoke_all(self, calls: Sequence[Call]) -> list[Outcome]:
        """One invocation for all. Where it has no answer, each of them is lost, or fails, under its own epoch."""
        if len(calls) == 1:
            return [self._invoke(calls[0])]
        answered = self._ask(calls[0], {"orders": [encode_call(call) for call in calls]})
        if isinstance(answered, Failure):
            return [answered] * len(calls)
        told = answered[0].get("outcomes") if isinstance(answered[0], Mapping) else None
        if not isinstance(told, list) or len(told) != len(calls):
            return [outcome_of(None)] * len(calls)
        return [outcome_of(one) for one in told]

    def _ask(self, call: Call, order: Mapping[str, Any]) -> tuple[Any] | Failure:
        """The function's answer; how the call fails where its process gave none."""
        with asking(f"run {call.run.key}"):
            try:
                answer = self._functions.invoke(FunctionName=self._function(call), Payload=json.dumps(order))
                content = answer["Payload"].read()  # it comes after the answer's head, and may be cut off
            except ClientError as error:
                _check_room(error)
                raise
        payload = json.loads(content or b"null")
        if "FunctionError" in answer:
            return crashed(payload.get("errorType", ""), payload.get("errorMessage", ""))
        return (payload,)

    def _start(self, call: Call) -> Failure | Elsewhere:
        run = call.run
        # The machine's history keeps what goes through it, so secrets go sealed.
        try:
            sealed = encode_call(call, seal=self._secrets.seal)
        except Unavailable as error:
            return Failure("SecretsUnavailable", f"The secrets could not be sealed: {error.message}")
        told = {"run": str(run.key), "epoch": run.epoch, "function": self._function(call), "call": sealed}
        order = json.dumps(told)
        if len(order) > ORDER_BYTES_MAX:
            message = (
                f"The task and its parameters take {len(order)} bytes: {ORDER_BYTES_MAX} is the most for a long one."
            )
            return Failure("TooLarge", message, FailureClass.PERMANENT)
        with asking(f"start {run.key}"):
            try:
                self._machines.start_execution(stateMachineArn=self._machine, name=execution_name(call), input=order)
            except ClientError as error:
                _check_room(error)
                if code_of(error) != "ExecutionAlreadyExists":  # safe: it is this attempt's own, begun unheard
                    raise
        return Elsewhere()


def is_short(runs: Runs, call: Call) -> bool:
    """Whether a task is waited for. A guess that nothing relies on: who waits can wait as long as the task may take."""
    if call.timeout <= SHORT_TIMEOUT or call.task.kind in _AT_ONCE:
        return True
    before = runs.of_job(call.run.key.job, until=call.run.key.run_id, limit=_LOOKED_AT)
    took = (
        (run.ended_at - run.started_at) / run.attempt  # with the waits between its attempts
        for run in before
        if run.started_at and run.ended_at
    )
    return next(took, timedelta.max) <= SHORT


def _nowhere() -> Failure:
    return Failure("LaunchRefused", "This deployment has no cluster to launch agents in.", FailureClass.PERMANENT)


class _Full(Exception):
    """AWS refused a call because there are too many."""


def _check_room(error: ClientError) -> None:
    if code_of(error) in _THROTTLED:
        raise _Full(code_of(error)) from error


def execution_name(call: Call) -> str:
    """The attempt's name, as Step Functions allows one: at most 80 characters, of letters, digits and dashes."""
    digest = blake2b(f"{call.run.key}/{call.task.id}".encode(), digest_size=20).hexdigest()
    return f"{digest}-{call.run.epoch}"


def outcome_of_machine(came: Mapping[str, Any]) -> Outcome:
    """What the machine reports: the function's answer, or the error with which its call ended."""
    if "outcome" in came:
        return outcome_of(came["outcome"])
    return crashed(str(came.get("Error", "")), str(came.get("Cause", "")))


def outcome_of(payload: Any) -> Outcome:
    """The function's answer; one that is none is its failure."""
    try:
        return decode_outcome(payload)
    except InvalidInput as error:
        return Failure("InvalidOutput", error.message[:_MESSAGE_CHARS_MAX])


def crashed(error: str, message: str) -> Failure:
    """The function did not answer: it was too slow, or its process died."""
    if any(mark in f"{error} {message}" for mark in _TIMED_OUT):
        return Failure("Timeout", "The task took longer than its function may.")
    return Failure(error or "Crashed", message[:_MESSAGE_CHARS_MAX] or "The task's process died.")
