"""The API in process: callers, and places with real stores that they can call."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, Final, Protocol, Self
from urllib.parse import parse_qsl

import pytest

from sweephand.api.app import PUBLIC, Api
from sweephand.api.asked import Patience
from sweephand.api.authorize import to_context
from sweephand.api.refusals import Unauthorized
from sweephand.api.sessions import Issuer
from sweephand.aws import unsealed_order
from sweephand.calls import Call, Outcome, Succeeded
from sweephand.clock import SystemClock, SystemDice
from sweephand.domain.access import EVERYWHERE, Caller, Role
from sweephand.domain.duration import parse_duration
from sweephand.domain.fields import instant
from sweephand.domain.ids import JobName, Namespace
from sweephand.embedded import PACE, Stores, open_stores
from sweephand.engine.issue import issue
from sweephand.local import Runtime
from sweephand.local.cloud import Deployment, Front, Later
from sweephand.local.cloud.account import Around, directly
from sweephand.local.cloud.mends import EPOCH
from sweephand.local.cloud.sources import Schedule
from sweephand.local.gateway import Api as Behind
from sweephand.orders import decode_call, encode_outcome
from sweephand.ports import Pace, World
from sweephand.settings import Settings
from sweephand.testing import VirtualScheduler
from sweephand.testing.tasks import Function
from sweephand.testing.tasks import Tasks as VirtualTasks
from sweephand.testing.virtual import SeededDice, VirtualClock

ROOT: Final = Path(__file__).resolve().parents[2]
A_MINUTE: Final = timedelta(minutes=1)
START: Final = "2026-03-02T00:10:00Z"
ISSUER: Final = "urn:sweephand:test"
_ARN: Final = "arn:aws:execute-api:local:000000000000:sweephand/api"
_UNSET: Final = object()

JSON = dict[str, Any]


@cache
def issuer_key() -> bytes:
    """One key for all tests: making one takes a while."""
    return Issuer.new_key()


@dataclass(frozen=True)
class Answered:
    """What came back."""

    status: int
    text: str
    headers: Mapping[str, str] = field(default_factory=dict)
    """Names in lower case."""

    @property
    def json(self) -> Any:
        return json.loads(self.text)

    @property
    def items(self) -> list[JSON]:
        found: list[JSON] = self.json["items"]
        return found

    def expect(self, status: int) -> Self:
        """Itself, if it has this status."""
        assert self.status == status, f"{self.status}: {self.text[:600]}"
        return self


class Client:
    """Calls the API as API Gateway would: first its authorizer, then the function."""

    def __init__(self, api: Behind, token: str | None = None, *, namespace: str | None = None) -> None:
        self.api = api
        self.token = token
        self.namespace = namespace

    def within(self, namespace: str) -> Client:
        """The same caller, who names a namespace."""
        return Client(self.api, self.token, namespace=namespace)

    def get(self, path: str, **headers: str) -> Answered:
        return self.call("GET", path, headers=headers)

    def post(self, path: str, body: Any = _UNSET, **headers: str) -> Answered:
        return self.call("POST", path, body, headers=headers)

    def put(self, path: str, body: Any = _UNSET, **headers: str) -> Answered:
        return self.call("PUT", path, body, headers=headers)

    def delete(self, path: str, **headers: str) -> Answered:
        return self.call("DELETE", path, headers=headers)

    def call(
        self,
        method: str,
        path: str,
        body: Any = _UNSET,
        *,
        raw: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        patience: Patience | None = None,
    ) -> Answered:
        """Make a call; `raw` are a body's bytes as they are. Headers' names may have underscores."""
        content = raw if raw is not None else (None if body is _UNSET else json.dumps(body).encode())
        event = self._event(method, path, content, headers or {})
        if (method, event["path"]) not in PUBLIC:
            try:
                policy = self.api.authorize(event)
            except Unauthorized as error:
                return Answered(401, json.dumps({"status": 401, "detail": error.message}))
            if policy["policyDocument"]["Statement"][0]["Effect"] != "Allow":
                return Answered(403, json.dumps({"status": 403, "detail": policy["context"]["reason"]}))
            event["requestContext"]["authorizer"] = policy["context"]
        return answered(self.api.handle(event, patience=patience))

    def pages(self, path: str) -> Iterator[list[JSON]]:
        """Every page of a list."""
        cursor = None
        while True:
            join = "&" if "?" in path else "?"
            page = self.get(path if cursor is None else f"{path}{join}cursor={cursor}").expect(200).json
            yield page["items"]
            cursor = page["nextCursor"]
            if cursor is None:
                return

    def _event(self, method: str, path: str, content: bytes | None, headers: Mapping[str, str]) -> JSON:
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        if content is not None and not any(name.lower() == "content-type" for name in given):
            given["Content-Type"] = "application/json"
        if self.token is not None:
            given.setdefault("Authorization", f"Bearer {self.token}")
        if self.namespace is not None:
            given.setdefault("X-Namespace", self.namespace)
        where, _, query = path.partition("?")
        pairs = parse_qsl(query, keep_blank_values=True)
        many: dict[str, list[str]] = {}
        for name, value in pairs:
            many.setdefault(name, []).append(value)
        try:
            text, encoded = content.decode() if content is not None else None, False
        except UnicodeDecodeError:
            text, encoded = base64.b64encode(content or b"").decode(), True
        return {
            "resource": "/{proxy+}",
            "path": f"/v1{where}",
            "httpMethod": method,
            "headers": given,
            "multiValueHeaders": {name: [value] for name, value in given.items()},
            "queryStringParameters": dict(pairs) or None,
            "multiValueQueryStringParameters": many or None,
            "requestContext": {"stage": "api", "path": f"/api/v1{where}"},
            "body": text,
            "isBase64Encoded": encoded,
            "methodArn": f"{_ARN}/{method}/v1{where}",
        }


class Known:
    """A place behind an authorizer that takes everybody for one caller: for people, whose user pool is not here."""

    def __init__(self, api: Behind, caller: Caller) -> None:
        self._api = api
        self._context = to_context(caller)

    def authorize(self, _event: JSON) -> Mapping[str, Any]:
        return {"policyDocument": {"Statement": [{"Effect": "Allow"}]}, "context": self._context}

    def handle(self, event: JSON, *, patience: Patience | None = None) -> Mapping[str, Any]:
        return self._api.handle(event, patience=patience)


def answered(result: Mapping[str, Any]) -> Answered:
    """A proxy result as a client sees it."""
    headers = {name.lower(): values[0] for name, values in (result.get("multiValueHeaders") or {}).items()}
    return Answered(result["statusCode"], result.get("body") or "", headers)


@dataclass(frozen=True)
class Callers:
    """Who can call a place: anybody, in any role."""

    world: World
    api: Behind

    def nobody(self) -> Client:
        return Client(self.api)

    def platform(self) -> Client:
        """An administrator to whom every namespace is open."""
        return self._with(EVERYWHERE, Role.ADMIN)

    def role(self, role: str, namespace: str = "default") -> Client:
        """Somebody with a role in one namespace."""
        return self._with(Namespace(namespace), Role(role))

    def _with(self, namespace: Namespace, role: Role) -> Client:
        return Client(self.api, issue(self.world, namespace=namespace, role=role, name=f"a-{role}", actor="test").text)


class Tasks:
    """A target: what each job does, by its name; any other ends well at once."""

    def __init__(self, **functions: Callable[[Call], Outcome]) -> None:
        self.functions = functions

    def execute(self, call: Call) -> Outcome:
        function = self.functions.get(call.run.key.job.name)
        return function(call) if function else Succeeded()


class Served:
    """The API in real time, on a file, with a runtime behind it for those who start it."""

    def __init__(self, folder: Path, tasks: Tasks | None = None, *, pace: Pace = PACE, workers: int = 4) -> None:
        self.clock = SystemClock()
        self.database = folder / "test.db"
        self.stores: Stores = open_stores(self.database, clock=self.clock)
        self.runtime = Runtime(
            self.stores, target=tasks or Tasks(), clock=self.clock, dice=SystemDice(), pace=pace, workers=workers
        )
        self.world = self.runtime.world
        self.issuer = Issuer(issuer_key(), url=ISSUER, clock=self.clock)
        self.api = Api(self.world, issuer=self.issuer)
        self.callers = Callers(self.world, self.api)
        self.admin = self.callers.platform()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.runtime.stop(timedelta(seconds=10))
        self.stores.close()


class Virtual(Protocol):
    """The API in virtual time: the test says when it is, and what tasks do. One set of tests for every engine."""

    clock: VirtualClock
    world: World
    api: Behind
    callers: Callers
    admin: Client

    @property
    def now(self) -> datetime: ...

    def on(self, job: str, function: Function | None = None, *, takes: timedelta | str | float = 0) -> None:
        """What a job's task does."""

    def go_on(self, **parts: float) -> None:
        """Let time pass, and let everything happen that follows from what happened."""

    def jump(self, **parts: float) -> None:
        """Let time pass while nothing happens."""

    def outage(self, length: timedelta = timedelta(0), **parts: float) -> None:
        """Let time pass while nothing works; then all goes on."""


class VirtualEmbedded(VirtualScheduler):
    """On stores in memory."""

    def __init__(self, start: str = START) -> None:
        super().__init__(start)
        self.world = self._world
        self.clock = self._clock
        self.api: Behind = Api(self._world)
        self.callers = Callers(self._world, self.api)
        self.admin = self.callers.platform()

    def go_on(self, **parts: float) -> None:
        self.advance(timedelta(**parts))

    def jump(self, **parts: float) -> None:
        self._clock.move(self.now + timedelta(**parts))


class VirtualCloud:
    """On AWS as moto plays it, through the real handlers; only users' code is a test's own."""

    def __init__(self, tmp: Path, start: str = START, *, around: Around = directly) -> None:
        self.clock = VirtualClock(instant(start, "start"))
        self._tasks = VirtualTasks()
        self.deployment = Deployment(
            ROOT,
            tmp=tmp,
            clock=self.clock,
            dice=SeededDice(0),
            settings=Settings(shards=1, url="https://sweephand.test", container_images="team/*"),
            around=around,
            substitutes={"execute": self._execute},
        )
        self.api: Behind = Front(self.deployment)

    def __enter__(self) -> Self:
        self.deployment.__enter__()
        self.world = self.deployment.world
        self.callers = Callers(self.world, self.api)
        self.admin = self.callers.platform()
        return self

    def __exit__(self, *error: Any) -> None:
        self.deployment.__exit__(*error)

    @property
    def now(self) -> datetime:
        return self.clock.now()

    def on(self, job: str, function: Function | None = None, *, takes: timedelta | str | float = 0) -> None:
        length = takes if isinstance(takes, timedelta) else parse_duration(takes, path="takes")
        self._tasks.set(JobName(job), function, length)

    def go_on(self, **parts: float) -> None:
        until = self.now + timedelta(**parts)
        self.deployment.step()
        while (following := self._next(until)) <= until:
            self._pass(following)
            self.deployment.step()
        self._pass(until)

    def jump(self, **parts: float) -> None:
        self.clock.move(self.now + timedelta(**parts))

    def outage(self, length: timedelta = timedelta(0), **parts: float) -> None:
        self.clock.move(self.now + length + timedelta(**parts))
        self.deployment.step()

    def _next(self, until: datetime) -> datetime:
        """When something can happen. Minutes in which nothing is due are passed over: their ticks come to nothing."""
        sources = (source for source in self.deployment.sources if not isinstance(source, Schedule))
        moments = [at for source in sources if (at := source.next_at()) is not None]
        entries = self.world.due.read(0, after=self.now, upto=until, limit=1)
        moments += [-(-(entry.at - EPOCH) // A_MINUTE) * A_MINUTE + EPOCH for entry in entries]
        return min(moments, default=datetime.max.replace(tzinfo=UTC))

    def _pass(self, to: datetime) -> None:
        self.clock.move(max(to, self.now))

    def _execute(self, event: Any, _context: object) -> Any:
        """A machine waits for a long task; a short one keeps its caller waiting, and all else with it."""
        call = decode_call(event, unseal=unsealed_order)
        return Later(encode_outcome(self._tasks.execute(call)), self._tasks.length(call))


ENGINES: Final = ("sqlite", "moto")


TABLE: Final = "It is a table of what is refused before any engine is asked."
MANY: Final = "It needs hundreds of jobs or runs, which moto takes minutes to hold; the bound is the API's own."


def sqlite_only(_reason: str) -> pytest.MarkDecorator:
    """On a test that says nothing about moto, for this reason."""
    return pytest.mark.parametrize("virtual", ["sqlite"], indirect=True)
