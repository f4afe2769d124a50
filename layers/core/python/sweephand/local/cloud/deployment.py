"""A whole deployment in this process: everything that the topology names, and the real handlers behind it."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from datetime import datetime
from functools import cached_property
from io import BytesIO
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Protocol, Self

from botocore.response import StreamingBody
from msgspec.structs import replace

from sweephand import aws, entrypoint
from sweephand.errors import Defect
from sweephand.local.cloud.account import (
    ACCOUNT,
    CONFIG,
    Answers,
    Around,
    account,
    artifacts_bucket,
    build,
    build_archive,
    build_key,
    directly,
    refusal,
)
from sweephand.local.cloud.cluster import Cluster
from sweephand.local.cloud.containers import Containers
from sweephand.local.cloud.functions import Event, FunctionFailed, Functions, Handler, Later
from sweephand.local.cloud.machines import Machines, machine_arn
from sweephand.local.cloud.sources import Happenings, Source, source_of
from sweephand.ports import Clock, Dice, World
from sweephand.settings import Settings
from sweephand.testing.virtual import VirtualClock
from sweephand.topology import BACKFILLING, DAG_RUN, EXECUTION, FUNCTIONS, EventFeed, Names

LIVE: Final = "https://live.execute-api.us-east-1.amazonaws.com/live"


class Connections(Protocol):
    """Where messages to WebSocket connections go; each answers False where the connection is gone."""

    def send(self, connection: str, message: Any) -> bool: ...

    def close(self, connection: str) -> bool: ...


class Deployment:
    """Functions, tables, queues, machines. Enter it, then let its sources work: by `step`, or by threads of their own.

    `root` holds `functions/` and `statemachines/`; `tmp` is what functions have as /tmp. `around` is called for every
    call of a boto3 client. Of a function that has a substitute, the handler is not loaded. Without `containers`, what
    is launched waits for somebody who speaks for it.
    """

    def __init__(
        self,
        root: Path,
        *,
        tmp: Path,
        clock: Clock,
        dice: Dice,
        settings: Settings | None = None,
        around: Around = directly,
        substitutes: Mapping[str, Handler] | None = None,
        containers: Containers | None = None,
        feeds: Sequence[EventFeed] = (),
    ) -> None:
        given = settings or Settings()
        self.names: Final = Names(given.name)
        self.clock: Final = clock
        self.dice: Final = dice
        self.settings: Final = replace(
            given,
            machine=machine_arn(self.names, EXECUTION),
            dag_machine=machine_arn(self.names, DAG_RUN),
            backfill_machine=machine_arn(self.names, BACKFILLING),
            live=LIVE,
            artifacts=artifacts_bucket(self.names),
            cluster=self.names.prefix,
            subnets="subnet-0",
            security_group="sg-0",
            task_role=f"arn:aws:iam::{ACCOUNT}:role/{self.names.of('agent')}",
            execution_role=f"arn:aws:iam::{ACCOUNT}:role/{self.names.of('images')}",
            agent_image=given.agent_image or "agent",
            agent_image_x86=given.agent_image_x86 or "agent-x86",
        )
        self._containers = containers
        self.feeds: Final = feeds
        """The events that are listened for."""
        self.cluster: Final = Cluster(self, containers.start if containers else None)
        self.pushed: Final[defaultdict[str, list[Any]]] = defaultdict(list)
        """What was sent to each WebSocket connection, where there are none but by name."""
        self.gone: Final[set[str]] = set()
        """Those of them that have ended."""
        self._connections: Connections | None = None
        self.neighbours: Final[dict[str, Callable[[Any], Any]]] = {}
        """Functions of other people in the same account, by their names; `FunctionFailed` is their error."""
        self._around = around
        self._functions = Functions(
            root / "functions", self.settings, tmp=tmp, clock=clock, dice=dice, substitutes=substitutes
        )
        self.machines: Final = Machines(self, root / "statemachines")
        self._open = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.enter_context(account(self.clock, around=self._around, answers=self.answers()))
            build(self.names, *self._clients)
            build_archive(self.names)
            build_key(self.names)
            self.cluster.build(self.settings.to_environ("url", "name", "artifacts"))
            stack.callback(self.cluster.close)
            stack.callback(entrypoint.begin, os.environ)
            self._open = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()

    def answers(self) -> Answers:
        """What is answered here and not by moto."""
        return {
            ("lambda", "Invoke"): self._invoke,
            ("stepfunctions", "StartExecution"): self.machines.start,
            ("stepfunctions", "StopExecution"): self.machines.stop,
            ("stepfunctions", "SendTaskSuccess"): self.machines.succeed,
            ("ecs", "RunTask"): self.cluster.run,
            ("ecs", "StopTask"): self.cluster.stop,
            ("ecs", "ListTasks"): self.cluster.listed,
            ("apigatewaymanagementapi", "PostToConnection"): self._push,
            ("apigatewaymanagementapi", "DeleteConnection"): self._end_connection,
        }

    @cached_property
    def _clients(self) -> tuple[Any, Any]:
        """Of the deployment itself: their calls are no function's."""
        return aws.clients(CONFIG)

    @property
    def sqs(self) -> Any:
        return self._clients[1]

    @cached_property
    def world(self) -> World:
        """For whoever needs no function: to issue the first token, and to look at what is stored."""
        stores = aws.connect(
            self.names,
            *self._clients,
            clock=self.clock,
            shards=self.settings.shards,
            config=CONFIG,
            artifacts_bucket=self.settings.artifacts,
        )
        world = World.over(
            stores, clock=self.clock, dice=self.dice, target=entrypoint.NoTarget(), pace=aws.PACE, owner="deployment"
        )
        fillers = aws.backfill_machine(self.settings.backfill_machine, CONFIG)
        return replace(world, machines=aws.dag_machine(self.settings.dag_machine, CONFIG), fillers=fillers)

    @cached_property
    def sources(self) -> tuple[Source, ...]:
        """Everything that calls functions by itself."""
        found = (source_of(self, function, trigger) for function in FUNCTIONS for trigger in function.triggers)
        return (*found, self.machines)

    def invoke(self, name: str, event: Event) -> Any:
        """What a function answers; `FunctionFailed` where it does not."""
        return self._functions.invoke(name, event)

    def tell(self, connections: Connections) -> None:
        """There are real connections: what is sent goes there."""
        self._connections = connections

    def happen(self, event: Event, *, bus: str = "default") -> None:
        """AWS tells everybody who listens for such events on a bus."""
        for source in self.sources:
            if isinstance(source, Happenings):
                source.hear(event, bus=bus)

    def step(self) -> datetime | None:
        """Do everything that can happen now, one thing after the other; when something can happen next."""
        while any([source.poll() for source in self.sources]):  # noqa: C419  # each gets its turn
            continue
        following = min((at for source in self.sources if (at := source.next_at())), default=None)
        if following is not None and following <= self.clock.now():
            raise Defect(f"What was due at {following.isoformat()} is not dealt with.")
        return following

    def _invoke(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Answers Invoke."""
        called = params["FunctionName"].rpartition("function:")[2]
        name = next((one.name for one in FUNCTIONS if self.names.function(one) == called), called)
        is_own, event = name != called, json.loads(params["Payload"])
        if not is_own and name not in self.neighbours:
            raise refusal("ResourceNotFoundException", "Invoke", status=404, message=f"Function not found: {name}")
        try:
            answer, failed = self.invoke(name, event) if is_own else self.neighbours[name](event), {}
        except FunctionFailed as error:
            answer, failed = error.payload, {"FunctionError": "Unhandled"}
        if isinstance(answer, Later):
            if not isinstance(self.clock, VirtualClock):
                raise Defect(f"Whoever invokes {name} waits for it: only in virtual time can it take until later.")
            self.clock.move(self.clock.now() + answer.after)  # and all else waits with it
            answer = answer.answer
        if params.get("InvocationType") == "Event":
            return {"StatusCode": 202, "Payload": StreamingBody(BytesIO(), 0)}
        content = json.dumps(answer).encode()
        return {"StatusCode": 200, "Payload": StreamingBody(BytesIO(content), len(content)), **failed}

    def _push(self, params: Mapping[str, Any]) -> dict[str, Any]:
        connection, message = params["ConnectionId"], json.loads(params["Data"])
        there = self._connections
        if connection in self.gone or (there is not None and not there.send(connection, message)):
            raise refusal("GoneException", "PostToConnection", status=410)
        if there is None:
            self.pushed[connection].append(message)
        return {}

    def _end_connection(self, params: Mapping[str, Any]) -> dict[str, Any]:
        connection, there = params["ConnectionId"], self._connections
        if connection in self.gone or (there is not None and not there.close(connection)):
            raise refusal("GoneException", "DeleteConnection", status=410)
        if there is None:
            self.gone.add(connection)
        return {}
