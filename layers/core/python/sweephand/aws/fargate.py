"""Agents on Fargate: one task of ECS for each attempt's epoch, and never two.

A container task is two containers: the image of its own, and the agent beside it, with a volume that both see. The
first begins when the agent is healthy, which is when the volume is prepared; the task ends with the agent. A program
that takes long is the agent alone. A definition is named by a hash of what is in it, and registered by whoever first
needs it.

The client token is a hash of the attempt: a call whose answer was lost finds the task that it started. The same hash
names the task in `startedBy`, by which it is found to be stopped.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from functools import cached_property
from hashlib import blake2b
from typing import Any, Final

from botocore.exceptions import ClientError
from msgspec import Struct

from sweephand.aws.calls import asking, code_of
from sweephand.calls import MOUNTED, Call, container_variables
from sweephand.domain.images import ARM, X86, Images, architecture_of, size_of
from sweephand.domain.retry import Failure, FailureClass
from sweephand.domain.templates import as_text, resolve
from sweephand.errors import InvalidInput, Unavailable
from sweephand.messages import Elsewhere, Unstarted
from sweephand.settings import Settings
from sweephand.topology import AGENT, AGENT_CONTAINER, TASK_CONTAINER, Names

logger: Final = logging.getLogger("sweephand")

OVERRIDES_CHARS_MAX: Final = 8_192
"""As ECS counts them, as JSON."""
TRIES_MAX: Final = 3
CONTAINER: Final = "container"
LAUNCHED: Final = frozenset({CONTAINER, "command", "python"})
ON_DEMAND, SPOT = "FARGATE", "FARGATE_SPOT"
_SHARED, _SCRATCH = "shared", "scratch"
_UNKNOWN: Final = ("TaskDefinition not found", "Unable to describe task definition")
_FULL: Final = frozenset({"ThrottlingException", "LimitExceededException", "TooManyRequestsException"})
_FULL_WORDS: Final = ("Capacity is unavailable", "Rate exceeded", "reached the limit", "throttl")
_FOR_NOW: Final = frozenset(
    {"ServerException", "InternalServerError", "ServiceUnavailable", "ServiceUnavailableException"}
)
_NEVER_REASONS: Final = ("MISSING", "ATTRIBUTE")
_MESSAGE_CHARS_MAX: Final = 600


class Cluster(Struct, frozen=True):
    """Where agents are launched, and what they are made of."""

    names: Names
    cluster: str
    subnets: tuple[str, ...]
    security_group: str
    task_role: str
    execution_role: str
    agents: Mapping[str, str]
    """The agent's image by the architecture that it is made for."""
    images: Images
    url: str
    artifacts: str
    region: str

    @classmethod
    def of(cls, own: Settings, *, region: str) -> Cluster:
        return cls(
            Names(own.name),
            own.cluster,
            tuple(filter(None, own.subnets.split(","))),
            own.security_group,
            own.task_role,
            own.execution_role,
            agents_of(own),
            images_of(own),
            own.url,
            own.artifacts,
            region,
        )


def agents_of(own: Settings) -> dict[str, str]:
    """The agent's images that there are."""
    return {kind: image for kind, image in ((ARM, own.agent_image), (X86, own.agent_image_x86)) if image}


def images_of(own: Settings) -> Images:
    """What containers may be made of in a deployment."""
    return Images.of(own.container_images.split(), agents_of(own))


class Fargate:
    """Launches agents, and stops them. The client is made for the first of them: most cold starts have none."""

    def __init__(self, client: Callable[[], Any], cluster: Cluster) -> None:
        self._make_client = client
        self._cluster = cluster

    @cached_property
    def _client(self) -> Any:
        return self._make_client()

    def launch(self, call: Call) -> Failure | Unstarted | Elsewhere:
        """Start an agent for the call's lease; what is refused for want of room was not begun."""
        spec = call.task.spec
        try:
            if call.task.kind == CONTAINER:
                self._cluster.images.check(spec, CONTAINER)
            overrides = self._overrides(call)
        except InvalidInput as refused:
            return _permanent("InvalidInput", f"{refused.path}: {refused.message}")
        size = len(json.dumps(overrides))
        if size > OVERRIDES_CHARS_MAX:
            message = (
                f"The command, variables and parameters take {size} characters: {OVERRIDES_CHARS_MAX} is the most."
            )
            return _permanent("TooLarge", message)
        is_spot = call.task.kind == CONTAINER and spec.get("spot") is True
        came = self._start(call, overrides, SPOT if is_spot else ON_DEMAND)
        if is_spot and isinstance(came, Unstarted):
            return self._start(call, overrides, ON_DEMAND)
        return came

    def stop(self, call: Call) -> None:
        """End what was launched for the call's epoch, if anything was. Where that fails, its next word ends it."""
        where = {"cluster": self._cluster.cluster}
        try:
            with asking(f"stop {call.run.key}"):
                for task in self._client.list_tasks(**where, startedBy=token_of(call)).get("taskArns", ()):
                    self._client.stop_task(**where, task=task, reason="Its run ended without it.")
        except Unavailable as error:
            logger.warning("What was launched for %s was not stopped: %s", call.run.key, error.message)

    def _start(self, call: Call, overrides: Mapping[str, Any], provider: str) -> Failure | Unstarted | Elsewhere:
        """The same token for the same call, whatever becomes of its answer; another for another provider."""
        asked = {
            "cluster": self._cluster.cluster,
            "taskDefinition": self._family(call),
            "count": 1,
            "clientToken": token_of(call, provider),
            "startedBy": token_of(call),
            "capacityProviderStrategy": [{"capacityProvider": provider, "weight": 1}],
            "networkConfiguration": {
                "awsvpcConfiguration": {
                    "subnets": list(self._cluster.subnets),
                    "securityGroups": [self._cluster.security_group],
                    "assignPublicIp": "ENABLED",
                }
            },
            "overrides": overrides,
        }
        for tries in range(1, TRIES_MAX + 1):
            try:
                with asking(f"launch {call.run.key}"):
                    came = self._run(call, asked)
                if tries > 1 and isinstance(came, Unstarted):
                    raise Unavailable(f"Whether {call.run.key} was launched is not known: {came.reason}")
                return came
            except Unavailable:
                if tries == TRIES_MAX:
                    raise
        raise AssertionError  # the loop returns or raises

    def _run(self, call: Call, asked: Mapping[str, Any]) -> Failure | Unstarted | Elsewhere:
        try:
            answer = self._client.run_task(**asked)
        except ClientError as error:
            if call.task.kind == CONTAINER and _is_unknown(error):
                self._client.register_task_definition(**self._definition(call))
                answer = self._client.run_task(**asked)
            else:
                return _refused(error)
        for failure in answer.get("failures") or ():
            return _failed(str(failure.get("reason", "")), str(failure.get("detail", "")))
        return Elsewhere()

    def _overrides(self, call: Call) -> dict[str, Any]:
        told = {"SWEEPHAND_LEASE": call.lease or "", "SWEEPHAND_EPOCH": str(call.run.epoch)}
        agent = {"name": AGENT_CONTAINER, "environment": _pairs(told)}
        if call.task.kind != CONTAINER:
            return {"containerOverrides": [agent]}
        # All that is known but secrets: ECS shows these words to whoever may look at a task.
        spec, known = call.task.spec, {"params": call.params, "run": call.context, **call.upstream}
        own = {name: as_text(value) for name, value in resolve(spec.get("env") or {}, known, "env").items()}
        task: dict[str, Any] = {"name": TASK_CONTAINER, "environment": _pairs(own | container_variables(call))}
        if spec.get("command"):
            task["command"] = [as_text(word) for word in resolve(spec["command"], known, "command")]
        disk = {"ephemeralStorage": {"sizeInGiB": spec["disk"]}} if spec.get("disk") else {}
        return {"containerOverrides": [agent, task], **disk}

    def _family(self, call: Call) -> str:
        if call.task.kind != CONTAINER:
            return self._cluster.names.of(AGENT)
        return str(self._definition(call)["family"])

    def _definition(self, call: Call) -> dict[str, Any]:
        """What a container task is made of; its name is a hash of all else."""
        spec, cluster = call.task.spec, self._cluster
        cpu, memory = size_of(spec)
        architecture = architecture_of(spec)
        content = {
            "requiresCompatibilities": ["FARGATE"],
            "networkMode": "awsvpc",
            "cpu": str(cpu),
            "memory": str(memory),
            "runtimePlatform": {
                "cpuArchitecture": architecture.upper(),
                "operatingSystemFamily": "LINUX",
            },
            "taskRoleArn": cluster.task_role,
            "executionRoleArn": cluster.execution_role,
            "volumes": [{"name": _SHARED}, {"name": _SCRATCH}],
            "containerDefinitions": [self._agent(cluster.agents[architecture]), _task(spec)],
        }
        digest = blake2b(json.dumps(content, sort_keys=True).encode(), digest_size=16).hexdigest()
        return {"family": cluster.names.of(f"task-{digest}"), **content}

    def _agent(self, image: str) -> dict[str, Any]:
        """It listens for the other's lines where the log driver of ECS looks for a router, as whom that wants it."""
        cluster, shared = self._cluster, str(MOUNTED.root)
        told = {
            "SWEEPHAND_URL": cluster.url,
            "SWEEPHAND_NAME": cluster.names.prefix,
            "SWEEPHAND_ARTIFACTS": cluster.artifacts,
            "SWEEPHAND_SHARED": shared,
        }
        log = {
            "awslogs-group": f"/aws/ecs/{cluster.names.of(AGENT)}",
            "awslogs-region": cluster.region,
            "awslogs-stream-prefix": AGENT,
        }
        return {
            "name": AGENT_CONTAINER,
            "image": image,
            "command": ["agent"],
            "essential": True,
            "user": "0",
            "readonlyRootFilesystem": True,
            "environment": _pairs(told),
            "mountPoints": [
                {"sourceVolume": _SHARED, "containerPath": shared},
                {"sourceVolume": _SCRATCH, "containerPath": "/tmp"},
            ],
            "firelensConfiguration": {"type": "fluentbit"},
            "healthCheck": {
                "command": ["CMD", "test", "-e", f"{shared}/ready"],
                "interval": 5,
                "timeout": 5,
                "retries": 10,
                "startPeriod": 300,
            },
            "logConfiguration": {"logDriver": "awslogs", "options": log},
            "stopTimeout": 120,
        }


def _task(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Not essential: its end is the agent's to report, and the agent's end is the task's."""
    return {
        "name": TASK_CONTAINER,
        "image": spec["image"],
        **({"entryPoint": list(spec["entrypoint"])} if spec.get("entrypoint") else {}),
        "essential": False,
        "privileged": False,
        "dependsOn": [{"containerName": AGENT_CONTAINER, "condition": "HEALTHY"}],
        "mountPoints": [{"sourceVolume": _SHARED, "containerPath": str(MOUNTED.root)}],
        "logConfiguration": {"logDriver": "awsfirelens"},
        "stopTimeout": 60,
    }


def token_of(call: Call, provider: str = "") -> str:
    """The attempt's name: at most 64 characters."""
    text = f"{call.run.key}/{call.task.id}/{call.run.epoch}/{provider}"
    return blake2b(text.encode(), digest_size=32).hexdigest()


def _pairs(variables: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in variables.items()]


def _is_unknown(error: ClientError) -> bool:
    return any(mark in str(error) for mark in _UNKNOWN)


def _refused(error: ClientError) -> Failure | Unstarted | Elsewhere:
    """What an error of RunTask means; one that says nothing about the attempt is raised."""
    code, message = code_of(error), str(error)
    if code == "ConflictException":
        return Elsewhere()  # the token is taken: it is this attempt's own, begun unheard
    if code in _FULL or any(mark in message for mark in _FULL_WORDS):
        return Unstarted(f"AWS had no room for it: {code}.")
    if code in _FOR_NOW or not code.endswith(("Exception", "Error")):
        raise error
    return _permanent("LaunchRefused", f"ECS refused to start it: {message[:_MESSAGE_CHARS_MAX]}")


def _failed(reason: str, detail: str) -> Failure | Unstarted:
    """ECS understood, and started nothing."""
    told = f"{reason} {detail}".strip()[:_MESSAGE_CHARS_MAX]
    if reason.startswith(_NEVER_REASONS):
        return _permanent("LaunchRefused", f"ECS could not start it: {told}")
    return Unstarted(f"AWS had no room for it: {told}.")


def _permanent(error: str, message: str) -> Failure:
    return Failure(error, message, FailureClass.PERMANENT)
