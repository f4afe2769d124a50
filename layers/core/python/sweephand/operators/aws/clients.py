"""Clients of AWS services, and calls by them: each is made once, since it may have taken effect although it failed.

Whether it is made again is for the job's `retry` to say, which knows what may be repeated.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from datetime import timedelta
from threading import Lock
from typing import Any, Final

from msgspec.structs import replace

from sweephand.calls import Call, Outcome
from sweephand.domain.targets import Arn, Targets
from sweephand.domain.templates import as_text
from sweephand.operators.aws.failures import Failed, failure_of
from sweephand.operators.operator import Attempt

ANSWER_WITHIN: Final = timedelta(seconds=30)
"""How long an answer is waited for by whoever only hands something over."""
_CONNECT_WITHIN_S: Final = 5.0
_CLIENTS_MAX: Final = 64


class Clients:
    """Clients by service, region and patience, made when they are first needed; the oldest are forgotten."""

    def __init__(self, agent: str) -> None:
        self._agent = agent
        self._lock = Lock()
        self._made: dict[tuple[str, str, float], Any] = {}

    def of(self, service: str, region: str, within: timedelta) -> Any:
        """A client that waits so long for an answer; `*` is the region of the environment."""
        seconds = within.total_seconds()
        key = (service, region, seconds)
        with self._lock:
            if key not in self._made:
                while len(self._made) >= _CLIENTS_MAX:
                    del self._made[next(iter(self._made))]
                self._made[key] = self._make(service, region, seconds)
            return self._made[key]

    def _make(self, service: Any, region: str, seconds: float) -> Any:
        import boto3
        from botocore.config import Config

        config = Config(
            retries={"mode": "standard", "total_max_attempts": 1},
            connect_timeout=min(seconds, _CONNECT_WITHIN_S),
            read_timeout=seconds,
            max_pool_connections=32,
            tcp_keepalive=True,
            user_agent_extra=self._agent,
        )
        return boto3.client(service, region_name=None if region == "*" else region, config=config)


class Caller(ABC):
    """What every operator of this package is: it finds what its task names, if it may, and calls."""

    service: str
    kind: str

    def __init__(self, targets: Targets, clients: Clients) -> None:
        self._targets = targets
        self._clients = clients

    def execute(self, attempt: Attempt) -> Outcome:
        try:
            return self.call(attempt)
        except Failed as failed:
            return failed.failure
        except Exception as error:  # noqa: BLE001  # what is no error of AWS's is raised again
            return failure_of(error, self.kind, attempt.call.timeout)

    @abstractmethod
    def call(self, attempt: Attempt) -> Outcome:
        """Do it; `Failed` says how it did not come about."""

    def target(self, attempt: Attempt, within: timedelta) -> tuple[Any, Arn]:
        """The target that the task names, and a client where it is."""
        arn = self.named(attempt)
        client = self._clients.of(self.service, arn.region, within)
        return client, replace(arn, region=client.meta.region_name)

    def named(self, attempt: Attempt) -> Arn:
        """The target that the task names, if it may be called."""
        return self._targets.find(self.kind, as_text(attempt.option("value", "")), self.kind)


def made(client: Any, operation: str, within: timedelta, /, **params: Any) -> Mapping[str, Any]:
    """The answer to a call; `Failed` where there is none, or where it is an error."""
    try:
        answer: Mapping[str, Any] = getattr(client, operation)(**params)
    except Exception as error:
        raise Failed(failure_of(error, _name_of(client, operation), within)) from error
    return answer


def _name_of(client: Any, operation: str) -> str:
    return f"{client.meta.service_model.service_name}:{client.meta.method_to_api_mapping[operation]}"


def soon(call: Call) -> timedelta:
    """How long to wait for an answer that should come at once: no longer than the task may take."""
    return min(call.timeout, ANSWER_WITHIN)
