"""Step Functions, as much of it as our machines use: tasks that invoke functions, with retries and catchers, and may
wait until somebody answers their token; choices by a text; waits; ends.

moto runs machines in threads, in real time; here an execution also goes on in virtual time, from moment to moment.
What a machine says beyond this is refused when it is loaded.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections import Counter
from collections.abc import Generator, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from threading import Lock
from typing import Any, Final, TypeVar

from msgspec import Struct

from sweephand.errors import Defect
from sweephand.local.cloud.account import NotOurs, arn, refusal
from sweephand.local.cloud.functions import FunctionFailed, Later, function_arn
from sweephand.local.cloud.sources import Surroundings
from sweephand.local.loop import logger
from sweephand.topology import FUNCTIONS, MACHINES, Machine, Names

_ALL: Final = "States.ALL"
_FAILED: Final = "States.TaskFailed"
_TIMEOUT: Final = "States.Timeout"
_INVOKE: Final = "arn:aws:states:::lambda:invoke"
_WAIT: Final = f"{_INVOKE}.waitForTaskToken"
_SAID: Final = {
    "Task": frozenset(
        {
            "Type",
            "Resource",
            "Parameters",
            "ResultSelector",
            "ResultPath",
            "TimeoutSeconds",
            "Retry",
            "Catch",
            "Next",
            "End",
        }
    ),
    "Choice": frozenset({"Type", "Choices", "Default"}),
    "Wait": frozenset({"Type", "SecondsPath", "Next"}),
    "Succeed": frozenset({"Type"}),
}
"""What is understood of each type of state."""
_RULE: Final = frozenset({"Variable", "StringEquals", "Next"})
_CALLED: Final = re.compile(r"\$\{(\w+)\}")

EVENTS_MAX: Final = 25_000
"""How long the history of an execution may become; then AWS ends it."""
_ATTEMPT_EVENTS: Final = 2
"""That a task was scheduled, and that it was started; a third says how it ended."""
_TOKEN_CHARS: Final = 700
"""About as long as AWS makes a token: who stores one pays for it."""

State = Mapping[str, Any]
T = TypeVar("T")


class _Pause(Struct, frozen=True):
    """An execution goes on at this moment; or sooner, where its token is answered."""

    at: datetime
    token: str | None = None


Steps = Generator[_Pause, None, T]
"""Goes on after each pause, and comes to something in the end."""


class Execution:
    """One run of a machine: what it counts is what AWS bills and bounds."""

    def __init__(self, machine: str, name: str, given: str, began_at: datetime) -> None:
        self.machine: Final = machine
        self.name: Final = name
        self.given: Final = given
        self.status = "RUNNING"
        self.transitions = 1
        """States that were entered, also by a retry, and the start, which AWS bills as one."""
        self.events = 1
        """How long its history is."""
        self.pause = _Pause(began_at)


class Machines:
    """The machines of the topology, and their executions."""

    name = "machines"
    at_once = 1_000

    def __init__(self, place: Surroundings, folder: Path) -> None:
        self._place = place
        self._machines = {machine_arn(place.names, one): _loaded(place.names, folder, one) for one in MACHINES}
        self._lock = Lock()
        self._executions: dict[tuple[str, str], Execution] = {}
        self._waiting: dict[Execution, Steps[None]] = {}
        self._open_tokens: set[str] = set()
        self._answers: dict[str, Any] = {}

    @property
    def executions(self) -> tuple[Execution, ...]:
        """All that were ever started, the oldest first."""
        return tuple(self._executions.values())

    def start(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Answers StartExecution."""
        machine = self._machines.get(params["stateMachineArn"])
        if machine is None:
            raise NotOurs(params["stateMachineArn"])
        machine_name = params["stateMachineArn"].rpartition(":")[2]
        name, given, now = params["name"], params["input"], self._place.clock.now()
        with self._lock:
            known = self._executions.get((machine_name, name))
            if known and (known.status != "RUNNING" or known.given != given):
                raise refusal("ExecutionAlreadyExists", "StartExecution")
            if known is None:
                known = self._executions[machine_name, name] = Execution(machine_name, name, given, now)
                self._waiting[known] = self._steps(machine, known, json.loads(given))
        return {"executionArn": arn("states", f"execution:{machine_name}:{name}"), "startDate": now}

    def stop(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Answers StopExecution."""
        machine_name, _, name = params["executionArn"].partition(":execution:")[2].partition(":")
        execution = self._executions.get((machine_name, name))
        if execution is None:
            raise NotOurs(params["executionArn"])
        with self._lock:
            self._end(execution, "ABORTED")
        return {"stopDate": self._place.clock.now()}

    def succeed(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Answers SendTaskSuccess."""
        token = params["taskToken"]
        with self._lock:
            if token not in self._open_tokens:
                raise refusal("TaskTimedOut" if token in self._answers else "InvalidToken", "SendTaskSuccess")
            self._open_tokens.discard(token)
            self._answers[token] = json.loads(params["output"])
        return {}

    def poll(self) -> bool:
        """Let the first execution that is due go on."""
        with self._lock:
            due = [one for one in self._waiting if self._due_at(one) <= self._place.clock.now()]
            if not due:
                return False
            execution = min(due, key=self._due_at)
            steps = self._waiting.pop(execution)
        pause = next(steps, None)
        with self._lock:
            if pause is not None and execution.status == "RUNNING":
                execution.pause = pause
                self._waiting[execution] = steps
        return True

    def next_at(self) -> datetime | None:
        with self._lock:
            return min(map(self._due_at, self._waiting), default=None)

    def _due_at(self, execution: Execution) -> datetime:
        token = execution.pause.token
        is_answered = token is not None and token not in self._open_tokens
        return min(self._place.clock.now(), execution.pause.at) if is_answered else execution.pause.at

    def _end(self, execution: Execution, status: str) -> None:
        if execution.status != "RUNNING":
            return  # somebody stopped it meanwhile
        execution.status = status
        execution.events += 1
        self._waiting.pop(execution, None)
        if execution.pause.token is not None:
            self._close(execution.pause.token)

    def _close(self, token: str) -> None:
        """Whoever answers it from now on is told that it is too late."""
        self._open_tokens.discard(token)
        self._answers.setdefault(token, None)

    # States.

    def _steps(self, machine: Mapping[str, Any], execution: Execution, data: Any) -> Steps[None]:
        following: str | None = machine["StartAt"]
        try:
            while following is not None:
                state = machine["States"][following]
                _count(execution, transitions=1, events=1)
                following, data = yield from self._entered(execution, state, data)
                _count(execution, events=1)
        except FunctionFailed as error:
            logger.warning("An execution of %s failed: %s", execution.machine, error)
            self._end(execution, "FAILED")
            return
        self._end(execution, "SUCCEEDED")

    def _entered(self, execution: Execution, state: State, data: Any) -> Steps[tuple[str | None, Any]]:
        """What comes after the state, and with which data."""
        match state["Type"]:
            case "Choice":
                return _chosen(state, data), data
            case "Succeed":
                return None, data
            case "Wait":
                yield _Pause(self._place.clock.now() + timedelta(seconds=_at(state["SecondsPath"], data)))
                return state["Next"], data
            case _:
                return (yield from self._task(execution, state, data))

    def _task(self, execution: Execution, state: State, data: Any) -> Steps[tuple[str | None, Any]]:
        """What comes next, and with which data; `FunctionFailed` where neither a retry nor a catcher helps."""
        retried: Counter[int] = Counter()
        while True:
            try:
                _count(execution, events=_ATTEMPT_EVENTS)
                result = yield from self._came_of(execution, state, data)
            except FunctionFailed as error:
                _count(execution, events=1)
                pause = self._pause(state, error, retried)
                if pause is not None:
                    _count(execution, transitions=1)
                    yield _Pause(self._place.clock.now() + pause)
                    continue
                catcher = next((one for one in state.get("Catch", ()) if _covers(one, error)), None)
                if catcher is None:
                    raise
                caught = {"Error": error.kind, "Cause": json.dumps(error.payload)}
                return catcher["Next"], _placed(data, catcher.get("ResultPath", "$"), caught)
            _count(execution, events=1)
            if "ResultSelector" in state:
                result = _filled(state["ResultSelector"], result, {})
            return state.get("Next"), _placed(data, state.get("ResultPath", "$"), result)

    def _came_of(self, execution: Execution, state: State, data: Any) -> Steps[Any]:
        """What the task comes to: its function's answer, or that of whoever answers its token."""
        if state["Resource"] == _INVOKE:
            payload = yield from self._invoked(state, _filled(state["Parameters"], data, {}))
            return {"ExecutedVersion": "$LATEST", "Payload": payload, "StatusCode": 200}
        ends_at = self._place.clock.now() + timedelta(seconds=state["TimeoutSeconds"])
        token = b64encode(f"{execution.name}:{self._place.dice.nonce()}:".ljust(_TOKEN_CHARS * 3 // 4, "t").encode())
        return (yield from self._answered(execution, state, data, token.decode(), ends_at))

    def _answered(self, execution: Execution, state: State, data: Any, token: str, ends_at: datetime) -> Steps[Any]:
        """What the token was answered with. That counts from the moment of the call, also while the function is still
        at it, and whatever becomes of that."""
        self._open_tokens.add(token)
        try:
            try:
                yield from self._invoked(state, _filled(state["Parameters"], data, {"Task": {"Token": token}}))
            except FunctionFailed:
                if token in self._open_tokens:
                    raise
            _count(execution, events=1)  # it was handed over
            while token in self._open_tokens:
                if self._place.clock.now() >= ends_at:
                    raise FunctionFailed(_TIMEOUT, "Nobody answered the token.")
                yield _Pause(ends_at, token)
            return self._answers[token]
        finally:
            self._close(token)

    def _invoked(self, state: State, parameters: Any) -> Steps[Any]:
        """What the task's function answers, once it does."""
        name = parameters["FunctionName"].rpartition(":")[2]
        function = next(one.name for one in FUNCTIONS if self._place.names.function(one) == name)
        answer = self._place.invoke(function, parameters["Payload"])
        if isinstance(answer, Later):
            allowed = timedelta(seconds=state["TimeoutSeconds"])
            yield _Pause(self._place.clock.now() + min(answer.after, allowed))
            if answer.after > allowed:
                raise FunctionFailed(_TIMEOUT, "The state took too long.")
            return answer.answer
        return answer

    def _pause(self, state: State, error: FunctionFailed, retried: Counter[int]) -> timedelta | None:
        """How long to wait before the task is tried again; None where it is not."""
        for number, retrier in enumerate(state.get("Retry", ())):
            if _covers(retrier, error):
                if retried[number] >= retrier.get("MaxAttempts", 3):
                    return None
                longest = retrier.get("IntervalSeconds", 1) * retrier.get("BackoffRate", 2) ** retried[number]
                retried[number] += 1
                return timedelta(seconds=min(longest, retrier["MaxDelaySeconds"]) * self._place.dice.chance())
        return None


def _count(execution: Execution, *, transitions: int = 0, events: int = 0) -> None:
    execution.transitions += transitions
    execution.events += events
    if execution.events >= EVENTS_MAX:
        raise FunctionFailed("States.Runtime", f"The history has reached {EVENTS_MAX} events.")


def _chosen(state: State, data: Any) -> str:
    for rule in state["Choices"]:
        if _at(rule["Variable"], data) == rule["StringEquals"]:
            return str(rule["Next"])
    return str(state["Default"])


def machine_arn(names: Names, machine: Machine) -> str:
    """The ARN of a machine."""
    return arn("states", f"stateMachine:{names.machine(machine)}")


def _loaded(names: Names, folder: Path, machine: Machine) -> Mapping[str, Any]:
    """A machine's text with the functions that it calls, checked against what is understood here."""
    text = (folder / f"{machine.name}.asl.json").read_text()
    called = {one.name: function_arn(names.function(one)) for one in FUNCTIONS if one.name in machine.calls}
    found: Mapping[str, Any] = json.loads(_CALLED.sub(lambda name: called[name[1]], text))
    for name, state in found["States"].items():
        if not _is_understood(state):
            raise Defect(f"The state {name} of the machine {machine.name} says what is not understood here.")
    return found


def _is_understood(state: State) -> bool:
    if state["Type"] not in _SAID or state.keys() - _SAID[state["Type"]]:
        return False
    rules_are_plain = all(rule.keys() == _RULE for rule in state.get("Choices", ()))
    return rules_are_plain and state.get("Resource", _INVOKE) in {_INVOKE, _WAIT}


def _covers(rule: Mapping[str, Any], error: FunctionFailed) -> bool:
    """`States.ALL` stands for any error, `States.TaskFailed` for any but a time-out; neither for a broken machine."""
    if error.kind == "States.Runtime":
        return False
    fitting = {_ALL, error.kind} | ({_FAILED} if error.kind != _TIMEOUT else set())
    return any(name in fitting for name in rule["ErrorEquals"])


def _filled(template: Any, data: Any, context: Any) -> Any:
    """A payload template with its paths replaced by what they lead to."""
    if not isinstance(template, Mapping):
        return template
    return {
        name.removesuffix(".$"): _at(value, context if value.startswith("$$") else data)
        if name.endswith(".$")
        else _filled(value, data, context)
        for name, value in template.items()
    }


def _at(path: str, data: Any) -> Any:
    """`$` is everything, `$.a.b` a part of it; so are `$$` and `$$.a.b` of the context."""
    for name in path.split(".")[1:]:
        data = data[name]
    return data


def _placed(data: Any, path: str | None, result: Any) -> Any:
    """The data with a result in its place; without one, the result is dropped."""
    if path is None:
        return data
    names = path.split(".")[1:]
    return {**data, names[0]: result} if names else result
