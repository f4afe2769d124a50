"""ECS, as much of it as agents need: tasks of Fargate are processes of this machine, and their ends are events.

An agent is the real one, with the environment that RunTask gave it. Beside it, what a container would run is a process
too: its image is not looked at. Both find what ECS would give them: the metadata of their task, and the log router's
socket. In virtual time nothing is started: a test speaks for the agents.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

import boto3
from botocore.exceptions import ClientError
from msgspec import Struct

from sweephand.local.cloud import events
from sweephand.local.cloud.account import CONFIG, arn, refusal
from sweephand.ports import Clock, Dice
from sweephand.topology import AGENT, AGENT_CONTAINER, Names

CAPACITY: Final = "Capacity is unavailable at this time. Please try again later or in a different availability zone"


class Ended(Struct, frozen=True):
    """How a task came to its end."""

    codes: Mapping[str, int | None]
    """Exit codes by container; None of one that was never started."""
    code: str = "EssentialContainerExited"
    reason: str = "Essential container in task exited"
    reasons: Mapping[str, str] = {}


class Task(Struct, frozen=True):
    """A task as it was asked for."""

    arn: str
    asked: Mapping[str, Any]
    definition: Mapping[str, Any]

    @property
    def id(self) -> str:
        return self.arn.rpartition("/")[2]

    def environment(self, container: str) -> dict[str, str]:
        """What a container was told: by its definition, then by the call."""
        overrides = (self.asked.get("overrides") or {}).get("containerOverrides") or ()
        given = [*self.definition["containerDefinitions"], *overrides]
        pairs = [pair for one in given if one["name"] == container for pair in one.get("environment") or ()]
        return {pair["name"]: pair["value"] for pair in pairs}

    def words(self, container: str) -> list[str]:
        """What a container runs, as far as it is said."""
        overrides = (self.asked.get("overrides") or {}).get("containerOverrides") or ()
        said = {one["name"]: one for one in self.definition["containerDefinitions"]}[container]
        command = next((one["command"] for one in overrides if one["name"] == container and "command" in one), None)
        return [*(said.get("entryPoint") or ()), *(command or said.get("command") or ())]

    @property
    def containers(self) -> list[str]:
        return [one["name"] for one in self.definition["containerDefinitions"]]


class Started(Protocol):
    """A task that runs."""

    @property
    def agent_pid(self) -> int: ...

    def stop(self) -> None:
        """Tell it to end; does not wait."""

    def kill(self) -> None:
        """End it at once."""


Start = Callable[[Task, Callable[[Ended], None]], Started]
"""Starts a task; how it ended is told once."""


class Surroundings(Protocol):
    @property
    def names(self) -> Names: ...

    @property
    def clock(self) -> Clock: ...

    @property
    def dice(self) -> Dice: ...

    def happen(self, event: Mapping[str, Any]) -> None: ...


class Cluster:
    """Answers for ECS. `start` is what makes processes of tasks; without it they wait for a test's word."""

    def __init__(self, place: Surroundings, start: Start | None = None) -> None:
        self._place = place
        self._start = start
        self._lock = threading.Lock()
        self._by_token: dict[str, tuple[str, Task]] = {}
        self._running: dict[str, Started | None] = {}
        self._stopping: dict[str, str] = {}
        self.tasks: Final[list[Task]] = []
        """All that were started, in order."""
        self.full: Final[set[str]] = set()
        """Capacity providers that have no room."""

    @property
    def running(self) -> list[Started]:
        """What runs as processes."""
        with self._lock:
            return [one for one in self._running.values() if one is not None]

    def build(self, told: Mapping[str, str]) -> None:
        """The definition of the agent alone, which a deployment brings along, with what it is told."""
        agent = {
            "name": AGENT_CONTAINER,
            "image": AGENT,
            "command": ["agent"],
            "essential": True,
            "environment": [{"name": name, "value": value} for name, value in told.items()],
        }
        boto3.client("ecs", config=CONFIG).register_task_definition(
            family=self._place.names.of(AGENT),
            requiresCompatibilities=["FARGATE"],
            cpu="256",
            memory="512",
            containerDefinitions=[agent],
        )

    def run(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Answers RunTask: once for a client token."""
        asked, token = json.dumps(params, sort_keys=True), params["clientToken"]
        provider = params["capacityProviderStrategy"][0]["capacityProvider"]
        if provider in self.full:
            return {"tasks": [], "failures": [{"reason": CAPACITY}]}
        try:
            found = boto3.client("ecs", config=CONFIG).describe_task_definition(taskDefinition=params["taskDefinition"])
        except ClientError as error:
            raise refusal("ClientException", "RunTask", message="TaskDefinition not found.") from error
        with self._lock:
            if token in self._by_token:
                known, task = self._by_token[token]
                if known != asked:
                    raise refusal("ConflictException", "RunTask", message="The token was used with other parameters.")
                return {"tasks": [_shown(task)], "failures": []}
            name = f"task/{params['cluster']}/{self._place.dice.nonce()}"
            task = Task(arn("ecs", name), params, found["taskDefinition"])
            self._by_token[token] = asked, task
            self.tasks.append(task)
            self._running[task.arn] = None
        if self._start is not None:
            started = self._start(task, lambda ended: self.end(task, ended))
            with self._lock:
                if task.arn in self._running:
                    self._running[task.arn] = started
        return {"tasks": [_shown(task)], "failures": []}

    def listed(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Answers ListTasks: those that run, by who started them."""
        with self._lock:
            found = [task.arn for task in self.tasks if task.arn in self._running]
        by = {task.arn: task.asked.get("startedBy") for task in self.tasks}
        return {"taskArns": [one for one in found if by[one] == params["startedBy"]]}

    def stop(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Answers StopTask."""
        task = next((one for one in self.tasks if one.arn == params["task"]), None)
        if task is None:
            raise refusal("InvalidParameterException", "StopTask", message="The referenced task was not found.")
        with self._lock:
            running, is_there = self._running.get(task.arn), task.arn in self._running
            self._stopping[task.arn] = str(params.get("reason", ""))
        if running is not None:
            running.stop()
        elif is_there:
            self.end(task, Ended(dict.fromkeys(task.containers)))
        return {"task": _shown(task)}

    def end(self, task: Task, ended: Ended) -> None:
        """A task has stopped: whoever listens is told."""
        with self._lock:
            if task.arn not in self._running:
                return
            del self._running[task.arn]
            reason = self._stopping.get(task.arn)
        code, why = (ended.code, ended.reason) if reason is None else ("UserInitiated", reason)
        told = events.stopped(
            _shown(task), ended.codes, ended.reasons, code=code, reason=why, at=self._place.clock.now()
        )
        self._place.happen({**told, "id": self._place.dice.nonce()})

    def close(self) -> None:
        """End everything that runs."""
        with self._lock:
            running = [one for one in self._running.values() if one is not None]
            self._running.clear()
        for one in running:
            one.kill()


def _shown(task: Task) -> dict[str, Any]:
    """As ECS tells of it."""
    return {
        "taskArn": task.arn,
        "clusterArn": arn("ecs", f"cluster/{task.asked['cluster']}"),
        "taskDefinitionArn": task.definition["taskDefinitionArn"],
        "startedBy": task.asked.get("startedBy"),
        "overrides": task.asked.get("overrides") or {},
        "containers": [{"name": name} for name in task.containers],
        "lastStatus": "PROVISIONING",
    }
