"""Step Functions, as much of it as our machines use: tasks that invoke functions, with retries and catchers.

moto runs machines in threads, in real time; here an execution also goes on in virtual time, from moment to moment.
What a machine says beyond this is refused when it is loaded.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Generator, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from threading import Lock
from typing import Any, Final, TypeVar

from msgspec import Struct

from sweephand.errors import Defect
from sweephand.local.cloud.account import arn, refusal
from sweephand.local.cloud.functions import FunctionFailed, Later, function_arn
from sweephand.local.cloud.sources import Surroundings
from sweephand.local.loop import logger
from sweephand.topology import FUNCTIONS, MACHINES, Machine, Names

_ALL: Final = "States.ALL"
_TASK: Final = frozenset(
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
)
_CALLED: Final = re.compile(r"\$\{(\w+)\}")
_INVOKE: Final = "arn:aws:states:::lambda:invoke"

State = Mapping[str, Any]
T = TypeVar("T")
Steps = Generator[datetime, None, T]
"""Goes on at each moment that it answers, and comes to something in the end."""


class _Execution(Struct, frozen=True):
    name: str
    steps: Steps[None]
    due_at: datetime


class Machines:
    """The machines of the topology, and their executions."""

    name = "machines"
    at_once = 1_000

    def __init__(self, place: Surroundings, folder: Path) -> None:
        self._place = place
        self._machines = {machine_arn(place.names, one): _loaded(place.names, folder, one) for one in MACHINES}
        self._lock = Lock()
        self._inputs: dict[str, str] = {}
        self._waiting: list[_Execution] = []
        self._under_way: set[str] = set()

    def start(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Answers StartExecution."""
        machine = self._machines.get(params["stateMachineArn"])
        if machine is None:
            raise refusal("StateMachineDoesNotExist", "StartExecution")
        name, given, now = params["name"], params["input"], self._place.clock.now()
        with self._lock:
            if name in self._inputs and (name not in self._under_way or self._inputs[name] != given):
                raise refusal("ExecutionAlreadyExists", "StartExecution")
            if name not in self._inputs:
                self._inputs[name] = given
                self._under_way.add(name)
                self._waiting.append(_Execution(name, self._steps(machine, json.loads(given)), now))
        machine_name = params["stateMachineArn"].rpartition(":")[2]
        return {"executionArn": arn("states", f"execution:{machine_name}:{name}"), "startDate": now}

    def poll(self) -> bool:
        """Let the first execution that is due go on."""
        with self._lock:
            due = [one for one in self._waiting if one.due_at <= self._place.clock.now()]
            if not due:
                return False
            execution = min(due, key=lambda one: one.due_at)
            self._waiting.remove(execution)
        due_at = next(execution.steps, None)
        with self._lock:
            if due_at is None:
                self._under_way.discard(execution.name)
            else:
                self._waiting.append(_Execution(execution.name, execution.steps, due_at))
        return True

    def next_at(self) -> datetime | None:
        with self._lock:
            return min((one.due_at for one in self._waiting), default=None)

    def _steps(self, machine: Mapping[str, Any], data: Any) -> Steps[None]:
        following: str | None = machine["StartAt"]
        while following is not None:
            try:
                following, data = yield from self._task(machine["States"][following], data)
            except FunctionFailed as error:
                logger.warning("An execution failed in %s: %s", following, error)
                return

    def _task(self, state: State, data: Any) -> Steps[tuple[str | None, Any]]:
        """What comes next, and with which data; `FunctionFailed` where neither a retry nor a catcher helps."""
        retried: Counter[int] = Counter()
        while True:
            try:
                payload = yield from self._invoked(state, data)
            except FunctionFailed as error:
                pause = self._pause(state, error, retried)
                if pause is not None:
                    yield self._place.clock.now() + pause
                    continue
                catcher = next((one for one in state.get("Catch", ()) if _covers(one, error)), None)
                if catcher is None:
                    raise
                caught = {"Error": error.kind, "Cause": json.dumps(error.payload)}
                return catcher["Next"], _placed(data, catcher.get("ResultPath", "$"), caught)
            result: Any = {"ExecutedVersion": "$LATEST", "Payload": payload, "StatusCode": 200}
            if "ResultSelector" in state:
                result = _filled(state["ResultSelector"], result)
            return state.get("Next"), _placed(data, state.get("ResultPath", "$"), result)

    def _invoked(self, state: State, data: Any) -> Steps[Any]:
        """What the task's function answers, once it does."""
        parameters = _filled(state["Parameters"], data)
        name = parameters["FunctionName"].rpartition(":")[2]
        function = next(one.name for one in FUNCTIONS if self._place.names.function(one) == name)
        answer = self._place.invoke(function, parameters["Payload"])
        if isinstance(answer, Later):
            allowed = timedelta(seconds=state["TimeoutSeconds"])
            yield self._place.clock.now() + min(answer.after, allowed)
            if answer.after > allowed:
                raise FunctionFailed("States.Timeout", "The state took too long.")
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


def machine_arn(names: Names, machine: Machine) -> str:
    """The ARN of a machine."""
    return arn("states", f"stateMachine:{names.machine(machine)}")


def _loaded(names: Names, folder: Path, machine: Machine) -> Mapping[str, Any]:
    """A machine's text with the functions that it calls, checked against what is understood here."""
    text = (folder / f"{machine.name}.asl.json").read_text()
    called = {one.name: function_arn(names.function(one)) for one in FUNCTIONS if one.name in machine.calls}
    found: Mapping[str, Any] = json.loads(_CALLED.sub(lambda name: called[name[1]], text))
    for name, state in found["States"].items():
        if state["Type"] != "Task" or state["Resource"] != _INVOKE or state.keys() - _TASK:
            raise Defect(f"The state {name} of the machine {machine.name} says what is not understood here.")
    return found


def _covers(rule: Mapping[str, Any], error: FunctionFailed) -> bool:
    return any(name in {_ALL, error.kind} for name in rule["ErrorEquals"])


def _filled(template: Any, data: Any) -> Any:
    """A payload template with its paths replaced by what they lead to."""
    if not isinstance(template, Mapping):
        return template
    return {
        name.removesuffix(".$"): _at(value, data) if name.endswith(".$") else _filled(value, data)
        for name, value in template.items()
    }


def _at(path: str, data: Any) -> Any:
    """`$` is everything, `$.a.b` a part of it."""
    for name in path.split(".")[1:]:
        data = data[name]
    return data


def _placed(data: Any, path: str | None, result: Any) -> Any:
    """The data with a result in its place; without one, the result is dropped."""
    if path is None:
        return data
    names = path.split(".")[1:]
    return {**data, names[0]: result} if names else result
