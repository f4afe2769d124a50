"""Where stories happen: the engine on SQLite with the operators of one machine, and the functions on moto."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, Protocol

from msgspec.structs import replace

from sweephand.domain.ids import JobKey, JobName, Namespace, RunKey
from sweephand.domain.reasons import ReasonCode
from sweephand.domain.run import Run
from sweephand.domain.targets import Targets
from sweephand.engine.cancel import cancel
from sweephand.engine.lease import Leased, lease
from sweephand.engine.look import Looking
from sweephand.engine.put import put
from sweephand.engine.trigger import trigger
from sweephand.local.cloud.account import AwsCall, Perform, account
from sweephand.local.cloud.deployment import Deployment
from sweephand.operators import Operators
from sweephand.operators.aws import aws_operators
from sweephand.ports import World
from sweephand.settings import Settings
from sweephand.testing.virtual import SeededDice, VirtualClock
from tests.engine.world import Town, town_of
from tests.functions.test_execute import ROOT, START
from tests.moto_world import Fault
from tests.operators.aws.account import TARGETS, Neighbourhood, build, client
from tests.operators.web import Web, serving

NS = Namespace("shop")
ACTIONS = ("dynamodb:ListTables",)
ABOUT = ("call", "attempt")
"""The functions whose calls of AWS a story may disturb: one machine calls as the first of them."""


class Neighbours:
    """What AWS does with the next calls of a kind: a fault, or something that happens meanwhile."""

    def __init__(self) -> None:
        self.next: defaultdict[str, deque[Fault | Callable[[], None]]] = defaultdict(deque)
        """By function and operation: `call.SendMessage`."""
        self.execution: dict[str, Any] = {}
        """How executions of Step Functions have ended, if they have."""
        self.calls: list[str] = []

    def around(self, call: AwsCall, perform: Perform) -> Any:
        if call.function not in ABOUT:
            return perform(call.params)
        name = f"{call.function}.{call.operation}"
        self.calls.append(name)
        happens = self.next[name].popleft() if self.next[name] else None
        if isinstance(happens, Fault):
            raise happens.error
        if happens is not None:
            happens()
        answer = perform(call.params)
        if call.operation == "DescribeExecution":
            return {**answer, "startDate": START, **self.execution}
        return answer


class Place(Protocol):
    """An engine with its neighbours, in virtual time."""

    name: str
    world: World
    aws: Neighbours
    web: Web
    folder: Path
    functions: dict[str, Callable[[Any], Any]]
    """Of other people in the account."""

    def advance(self, **span: float) -> None:
        """Let time pass, and all happen that it brings."""


class Scene:
    """One job of a place, and its run."""

    def __init__(self, place: Place, job: str) -> None:
        self.place = place
        self.key = JobKey(NS, JobName(job))
        self.run_key: RunKey | None = None

    def begin(self, run: Any, *, params: dict[str, Any] | None = None, **more: Any) -> None:
        document = {"name": self.key.name, "run": run, "timeout": "30s", **more}
        put(self.place.world, NS, document, actor="test", expected=None)
        self.run_key = trigger(self.place.world, self.key, params=params).key
        self.place.advance(seconds=0)

    def other(self, name: str, run: Any) -> Run:
        """Another job, and the run that it came to."""
        head = put(self.place.world, NS, {"name": name, "run": run, "timeout": "30s"}, actor="test", expected=None)
        key = trigger(self.place.world, head.key).key
        self.place.advance(seconds=5)
        found = self.place.world.runs.get(key)
        assert found is not None
        return found

    @property
    def run(self) -> Run:
        assert self.run_key is not None
        found = self.place.world.runs.get(self.run_key)
        assert found is not None
        return found

    @property
    def waits(self) -> bool:
        return self.run.reason is not None and self.run.reason.code is ReasonCode.WAITING

    def cancel(self) -> None:
        """What a person does: the run that is open, whichever it is."""
        runs = self.place.world.runs.of_job(self.key, limit=1)
        cancel(self.place.world, runs[0].key, actor="test")

    def lease(self) -> Leased:
        (leased,) = lease(self.place.world, NS, "worker", [self.key.name], most=1)
        return leased

    def stopped(self) -> int:
        """How many executions of the machine somebody has stopped."""
        sfn = client("stepfunctions")
        (machine,) = (
            one for one in sfn.list_state_machines()["stateMachines"] if one["stateMachineArn"].endswith(":bake")
        )
        found = sfn.list_executions(stateMachineArn=machine["stateMachineArn"])["executions"]
        return sum(one["status"] == "ABORTED" for one in found)


class OnSqlite:
    """The engine on SQLite, with what one machine can run."""

    name = "sqlite"

    def __init__(self, town: Town, neighbourhood: Neighbourhood, aws: Neighbours, web: Web, folder: Path) -> None:
        self._town = town
        self.aws = aws
        self.web = web
        self.folder = folder
        self.functions = neighbourhood.functions
        listed = Targets.of(TARGETS, ACTIONS, own="sweephand")
        called = aws_operators(listed, clock=town.clock, agent="sweephand/call")
        operators = Operators(folder / "work", http_may_reach=["127.0.0.1"], clock=town.clock, also=called)
        self.world = replace(town.world, target=Looking(operators, town.world))
        town.world = self.world

    def advance(self, **span: float) -> None:
        self._town.advance(to=self._town.clock.at + timedelta(**span))


class OnMoto:
    """The functions of a deployment."""

    name = "moto"

    def __init__(self, deployment: Deployment, clock: VirtualClock, aws: Neighbours, web: Web, folder: Path) -> None:
        self._deployment = deployment
        self._clock = clock
        self.world = deployment.world
        self.aws = aws
        self.web = web
        self.folder = folder
        self.functions = deployment.neighbours

    def advance(self, **span: float) -> None:
        end = self._clock.now() + timedelta(**span)
        while (following := self._deployment.step()) is not None and following <= end:
            self._clock.move(following)
        self._clock.move(end)
        self._deployment.step()


@contextmanager
def on_sqlite(folder: Path) -> Iterator[Place]:
    aws = Neighbours()
    with serving({}) as web, town_of("sqlite", start=START) as town:
        there = Neighbourhood(town.clock)
        with account(town.clock, around=aws.around, answers={("lambda", "Invoke"): there.invoke}):
            build()
            yield OnSqlite(town, there, aws, web, folder)


@contextmanager
def on_moto(folder: Path) -> Iterator[Place]:
    aws, clock = Neighbours(), VirtualClock(START)
    with serving({}) as web:
        settings = Settings(
            shards=1, targets=" ".join(TARGETS), sdk_actions=" ".join(ACTIONS), http_may_reach="127.0.0.1"
        )
        deployment = Deployment(ROOT, tmp=folder, clock=clock, dice=SeededDice(1), settings=settings, around=aws.around)
        with deployment:
            build()
            yield OnMoto(deployment, clock, aws, web, folder)
