"""The machine `dag_run` as moto's own interpreter of Step Functions reads it: in threads, and in real time."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Self

import boto3
from moto import mock_aws

from sweephand.local.cloud.account import CONFIG, Answers
from sweephand.local.cloud.deployment import Deployment
from sweephand.local.cloud.functions import Event, function_arn
from sweephand.orders import encode_outcome
from sweephand.settings import Settings
from sweephand.testing.virtual import SeededDice, VirtualClock
from sweephand.topology import DAG_RUN
from tests.dags.played import Does
from tests.faults.place import ROOT, START, Target
from tests.local.waiting import until

ROLE: Final = "arn:aws:iam::123456789012:role/any"
LANES: Final = ("high", "normal", "low")
_TRUST: Final = json.dumps({"Version": "2012-10-17", "Statement": []})


def build_role() -> None:
    """Whatever moto asks for, where a machine is made."""
    boto3.client("iam", config=CONFIG).create_role(RoleName="any", AssumeRolePolicyDocument=_TRUST)


def text_of(called: Mapping[str, str], *, timeout_s: int | None = None) -> str:
    """The machine's text, with the ARNs of its functions."""
    text = (ROOT / "statemachines" / "dag_run.asl.json").read_text()
    for name, arn in called.items():
        text = text.replace(f"${{{name}}}", arn)
    definition = json.loads(text)
    advance = definition["States"]["Advance"]
    advance["TimeoutSeconds"] = timeout_s or advance["TimeoutSeconds"]
    # moto takes a catcher that leads back to its own state for none: here it goes by way of another.
    (catcher,) = advance["Catch"]
    definition["States"]["Again"] = {"Type": "Pass", "Next": catcher["Next"]}
    catcher["Next"] = "Again"
    return json.dumps(definition)


class Interpreting(Deployment):
    """The real handlers, and executions that moto carries out; messages are delivered when a test says so."""

    def __init__(self, tmp: Path) -> None:
        clock = VirtualClock(START)
        self.target = Target(clock)
        self.waves: Counter[str] = Counter()
        """How often each run was advanced."""
        super().__init__(
            ROOT,
            tmp=tmp,
            clock=clock,
            dice=SeededDice(1),
            settings=Settings(shards=1),
            substitutes={"execute": self.target},
        )

    def __enter__(self) -> Self:
        super().__enter__()
        build_role()
        self._machines: Any = boto3.client("stepfunctions", config=CONFIG)
        called = {name: function_arn(self.names.of(name)) for name in ("advance", "settle")}
        made = self._machines.create_state_machine(
            name=self.names.machine(DAG_RUN), definition=text_of(called), roleArn=ROLE
        )
        self._machine = made["stateMachineArn"]
        return self

    def answers(self) -> Answers:
        return {asked: answer for asked, answer in super().answers().items() if asked[0] != "stepfunctions"}

    def invoke(self, name: str, event: Event) -> Any:
        if name == "advance":
            self.waves[event["run"]] += 1
        return super().invoke(name, event)

    def teach(self, job: str, does: Does) -> None:
        self.target.does[job] = lambda effect: encode_outcome(does(effect.run.task, effect.attempt))

    def go_on(self) -> None:
        """Deliver what is sent next, if anything is before every execution has ended."""
        until(lambda: self._deliver() or not self._executions("RUNNING"), within_s=60, what="news")

    def transitions(self) -> dict[str, int]:
        """What AWS would bill of each run's execution: the start, and every state that its history says was entered."""
        found = {}
        for arn in self._executions("SUCCEEDED"):
            events = self._machines.get_execution_history(executionArn=arn)["events"]
            run = json.loads(self._machines.describe_execution(executionArn=arn)["input"])["run"]
            found[run] = 1 + sum(event["type"].endswith("StateEntered") for event in events)
        return found

    def _deliver(self) -> bool:
        return any([source.poll() for source in self.sources if source.name in LANES])  # noqa: C419  # each gets its turn

    def _executions(self, status: str) -> list[str]:
        listed = self._machines.list_executions(stateMachineArn=self._machine, statusFilter=status)
        return [execution["executionArn"] for execution in listed["executions"]]


@contextmanager
def interpreting(tmp: Path) -> Iterator[Interpreting]:
    """A deployment whose machines moto carries out."""
    with mock_aws(config={"stepfunctions": {"execute_state_machine": True}}), Interpreting(tmp) as found:
        yield found
