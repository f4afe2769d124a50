"""What keeps runs of several tasks going, and backfills: an execution of a machine for each generation of one.

An execution of `dag_run` sleeps in a state that waits for its token to be answered; the answer says what it does next.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cached_property
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from botocore.exceptions import ClientError

from sweephand.aws.calls import asking, code_of
from sweephand.domain.backfill import BackfillKey
from sweephand.domain.ids import RunKey

if TYPE_CHECKING:
    from types_boto3_stepfunctions.client import SFNClient

ADVANCE: Final = "advance"
"""The step of one who was woken."""
_GONE: Final = frozenset({"TaskTimedOut", "TaskDoesNotExist", "InvalidToken"})


class StepFunctions:
    """The `Machines` port."""

    def __init__(self, make: Callable[[], SFNClient], *, machine: str) -> None:
        self._make = make
        self._machine = machine

    @cached_property
    def _client(self) -> SFNClient:
        """Made for the first run of several tasks: most cold starts have none."""
        return self._make()

    def start(self, run: RunKey, *, generation: int) -> None:
        told = {"run": str(run), "generation": generation, "came": {"step": ADVANCE}}
        name = execution_name(run, generation)
        with asking(f"start {run}"):
            try:
                self._client.start_execution(stateMachineArn=self._machine, name=name, input=json.dumps(told))
            except ClientError as error:
                if code_of(error) != "ExecutionAlreadyExists":  # safe: it is this generation's own, begun before
                    raise

    def wake(self, token: str) -> None:
        self.answer(token, ADVANCE)

    def answer(self, token: str, step: str) -> None:
        """Tell the one who waits under this token what it does next."""
        with asking(f"answer a token with {step}"):
            try:
                self._client.send_task_success(taskToken=token, output=json.dumps({"step": step}))
            except ClientError as error:
                if code_of(error) not in _GONE:  # safe: it was answered, or has come again under another
                    raise


class BackfillMachine:
    """The `Fillers` port."""

    def __init__(self, make: Callable[[], SFNClient], *, machine: str) -> None:
        self._make = make
        self._machine = machine

    @cached_property
    def _client(self) -> SFNClient:
        """Made for the first backfill: most cold starts have none."""
        return self._make()

    def start(self, backfill: BackfillKey, *, generation: int) -> None:
        told = {"backfill": str(backfill), "generation": generation, "came": {"looks": 0}}
        name = execution_name(backfill, generation)
        with asking(f"start {backfill}"):
            try:
                self._client.start_execution(stateMachineArn=self._machine, name=name, input=json.dumps(told))
            except ClientError as error:
                if code_of(error) != "ExecutionAlreadyExists":  # safe: it is this generation's own, begun before
                    raise


def execution_name(what: RunKey | BackfillKey, generation: int) -> str:
    """A name as Step Functions allows one: at most 80 characters, of letters, digits and dashes."""
    digest = blake2b(str(what).encode(), digest_size=20).hexdigest()
    return f"{digest}-{generation}"
