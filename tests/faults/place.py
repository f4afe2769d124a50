"""A deployment in virtual time where everything can go wrong, and a target that writes down what it was asked to do."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import boto3

from sweephand import aws
from sweephand.api.authorize import to_context
from sweephand.aws.items import run_of
from sweephand.calls import Call, Outcome, Succeeded
from sweephand.domain.access import Caller, PrincipalKind, Role
from sweephand.domain.ids import DEFAULT, JobKey, JobName, RunKey
from sweephand.domain.ledger import LedgerRow
from sweephand.domain.run import Run
from sweephand.engine.ledger import ledger
from sweephand.engine.put import put
from sweephand.engine.trigger import trigger
from sweephand.local.cloud import events
from sweephand.local.cloud.account import CONFIG, AwsCall, Perform, changes, directly
from sweephand.local.cloud.deployment import Deployment
from sweephand.local.cloud.functions import Event, FunctionFailed
from sweephand.orders import encode_outcome
from sweephand.ports import DeadLetter, World
from sweephand.settings import Settings
from sweephand.testing.virtual import SeededDice, VirtualClock
from sweephand.topology import FUNCTIONS, RUNS, UNDELIVERED, Table
from tests.moto_world import Fault, Partial, failing

ROOT: Final = Path(__file__).parents[2]
START: Final = datetime(2026, 11, 16, 6, 0, 30, tzinfo=UTC)
SECOND: Final = timedelta(seconds=1)
MINUTE: Final = timedelta(minutes=1)
HOUR: Final = timedelta(hours=1)
LEASE: Final = timedelta(seconds=60)
"""How long a claim of a job lasts here that says nothing else: its time-out of 30 s, and 30 s more."""

_TIMEOUTS: Final = {function.name: function.timeout for function in FUNCTIONS}

Faults = Callable[[AwsCall], Fault | Partial | None]
"""Decides about a call of a function: by service, operation, parameters, and which function makes it."""
Entry = Mapping[str, Any]
Transit = Callable[[Entry], Sequence[Entry]]
"""What becomes of a message between its sender and the queue: itself, later, twice, or nothing."""


class Died(BaseException):
    """The process ends here; nobody who writes `except Exception` hears of it."""


@dataclass(eq=False)
class Invocation:
    """One event in one process. Once it is dead, none of its threads gets a call through."""

    ends_at: datetime
    is_dead: bool = False

    def die(self) -> None:
        self.is_dead = True
        raise Died


@dataclass
class Trap:
    """Kills the invocation at its next call that fits, before the call or after it."""

    fits: Callable[[AwsCall], bool]
    after: bool
    times: int = 1


@dataclass(frozen=True)
class Effect:
    """A call of users' code, as it sees itself."""

    run: RunKey
    key: str
    epoch: int
    attempt: int
    at: datetime

    @property
    def job(self) -> str:
        return self.run.job.name


class Target:
    """The function `execute`: what it was asked to do stays written down, whatever becomes of the answer."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self.effects: list[Effect] = []
        self.does: dict[str, Callable[[Effect], Any]] = {}
        """What the code of a job does, by the job's name; what it returns is the outcome, None means well."""

    def __call__(self, event: Mapping[str, Any], _context: object) -> Any:
        run, epoch, attempt = RunKey.of(event["run"]), event["epoch"], event["attempt"]
        effect = Effect(run, event["idempotencyKey"], epoch, attempt, self._clock.now())
        self.effects.append(effect)
        does = self.does.get(effect.job)
        came = does(effect) if does else None
        return encode_outcome(Succeeded()) if came is None else came

    def of(self, name: str) -> list[Effect]:
        return [effect for effect in self.effects if effect.job == name]


class Faulty(Deployment):
    """The deployment as a careless world runs it."""

    def __init__(self, place: Place, root: Path, **more: Any) -> None:
        super().__init__(root, **more)
        self._place = place

    def invoke(self, name: str, event: Event) -> Any:
        place = self._place
        if name in place.lost:
            return None
        place.deliveries[name].append(event)
        if name in place.throttled:
            raise FunctionFailed("Lambda.TooManyRequestsException", "Rate exceeded")
        answer = self._invoked(name, event)
        answer = self._invoked(name, event) if name in place.twice else answer
        place.answers[name].append(answer)
        return answer

    def _invoked(self, name: str, event: Event) -> Any:
        invocation = Invocation(self.clock.now() + _TIMEOUTS[name])
        under_way = self._place.under_way[name]
        under_way.append(invocation)
        try:
            return super().invoke(name, event)
        except Died as died:
            self._functions._idle[name].clear()  # what comes next has a process of its own
            raise FunctionFailed("Runtime.ExitError", "Runtime exited") from died
        except FunctionFailed:
            raise
        except Exception as error:
            raise FunctionFailed("Runtime.ImportModuleError", str(error)) from error  # it could not even start
        finally:
            under_way.remove(invocation)

    def step(self) -> datetime | None:
        """As every deployment, but some sources may be silent."""
        working = [source for source in self.sources if source.name not in self._place.silent]
        while any([source.poll() for source in working]):  # noqa: C419  # each gets its turn
            continue
        return min((at for source in working if (at := source.next_at())), default=None)


@dataclass
class Place:
    """A deployment, its time, its target, and what goes wrong in it."""

    tmp: Path
    root: Path = ROOT
    seed: int = 1
    shards: int = 1
    settings: Settings | None = None

    faults: Faults = lambda _call: None
    garbles: Callable[[AwsCall, Any], Any] = lambda _call, answer: answer
    """What becomes of an answer on its way back."""
    transit: Transit = lambda entry: [entry]
    traps: list[Trap] = field(default_factory=list)
    silent: set[str] = field(default_factory=lambda: {"project", "live"})
    """Schedules, queues, streams and machines from which nothing comes: by the function's or the queue's name.

    Most faults here do not concern those who read the stream, and their calls take half of the time.
    """
    throttled: set[str] = field(default_factory=set)
    """Functions that have no room for anything."""
    twice: set[str] = field(default_factory=set)
    """Functions to which every event is delivered twice."""
    lost: set[str] = field(default_factory=set)
    """Functions whose events come to nothing, and nobody tries again."""
    keeps_deleted: Callable[[], bool] = lambda: False
    """Whether a batch of messages that was dealt with is delivered again all the same."""

    deliveries: defaultdict[str, list[Event]] = field(default_factory=lambda: defaultdict(list))
    answers: defaultdict[str, list[Any]] = field(default_factory=lambda: defaultdict(list))
    under_way: defaultdict[str, list[Invocation]] = field(default_factory=lambda: defaultdict(list))
    calls: list[AwsCall] = field(default_factory=list)
    """Every call of a function that got through to AWS, or was refused there."""

    def __post_init__(self) -> None:
        self.clock = VirtualClock(START)
        self.dice = SeededDice(self.seed)
        self.target = Target(self.clock)
        self.deployment = Faulty(
            self,
            self.root,
            tmp=self.tmp,
            clock=self.clock,
            dice=self.dice,
            settings=self.settings or Settings(shards=self.shards, issuer="https://pool.test"),
            around=self._around,
            substitutes={"execute": self.target},
        )

    @property
    def world(self) -> World:
        return self.deployment.world

    @property
    def now(self) -> datetime:
        return self.clock.now()

    def rival(self) -> World:
        """Another process, whose every call is made by the thread that asks, and none of them fails."""
        clients = aws.clients(CONFIG)
        stores = aws.connect(self.deployment.names, *clients, clock=self.clock, abreast=1, shards=self.shards)
        return World.over(stores, clock=self.clock, dice=self.dice, target=_Idle(), pace=aws.PACE, owner="rival")

    def client(self, service: str) -> Any:
        """Somebody who is no function of ours."""
        return boto3.client(service, config=CONFIG)  # type: ignore[call-overload]  # any service

    def only(self, *sources: str) -> None:
        """Let nothing come but from these: what a test does not need costs time."""
        self.silent = {source.name for source in self.deployment.sources} - set(sources)

    # What goes wrong.

    def _around(self, call: AwsCall, perform: Perform) -> Any:
        if not call.function:
            if call.operation == "DeleteMessageBatch" and self.keeps_deleted():
                return {"Successful": [{"Id": one["Id"]} for one in call.params["Entries"]]}
            return perform(call.params)
        invocation = self.under_way[call.function][-1]
        if invocation.is_dead or self.now > invocation.ends_at:
            invocation.die()
        trap = next((one for one in self.traps if one.times and one.fits(call)), None)
        if trap:
            trap.times -= 1
        if trap and not trap.after:
            invocation.die()
        self.calls.append(call)
        fault = self.faults(call)
        answer = failing(lambda *_: fault, directly)(call, self._delivering(call, perform))
        if trap:
            invocation.die()
        return self.garbles(call, answer)

    def _delivering(self, call: AwsCall, perform: Perform) -> Perform:
        if call.operation != "SendMessageBatch":
            return perform

        def send(params: Mapping[str, Any]) -> Any:
            arriving = [one for entry in params["Entries"] for one in self.transit(entry)]
            numbered = [{**entry, "Id": f"{n}"} for n, entry in enumerate(arriving)]
            for first in range(0, len(numbered), 10):
                perform({**params, "Entries": numbered[first : first + 10]})
            return {"Successful": [{"Id": entry["Id"]} for entry in params["Entries"]]}

        return send

    def die_before(self, function: str, operation: str, table: Table | None = None, *, times: int = 1) -> None:
        """The next invocation of a function that comes to this call ends there."""
        self.traps.append(Trap(self._fitting(function, operation, table), after=False, times=times))

    def die_after(self, function: str, operation: str, table: Table | None = None, *, times: int = 1) -> None:
        """The call takes effect, and its caller ends."""
        self.traps.append(Trap(self._fitting(function, operation, table), after=True, times=times))

    def _fitting(self, function: str, operation: str, table: Table | None) -> Callable[[AwsCall], bool]:
        return lambda call: call.function == function and call.operation == operation and self.is_of(call, table)

    def is_of(self, call: AwsCall, table: Table | None) -> bool:
        """Whether a call concerns a table; None means any."""
        if table is None:
            return True
        name = self.deployment.names.table(table)
        return call.params.get("TableName") == name or name in call.params.get("RequestItems", ())

    # What people and time do.

    def put(self, name: str, schedule: Any = None, *, expected: int | None = None, **more: Any) -> JobKey:
        """A job, without any faults."""
        document = {"name": name, "command": name, "timeout": "30s", **more}
        if schedule is not None:
            document["schedule"] = schedule
        return put(self.world, DEFAULT, document, actor="test", expected=expected).key

    def run(self, name: str) -> Run:
        """A triggered run of the job, of which nothing has happened yet."""
        return trigger(self.world, JobKey(DEFAULT, JobName(name)))

    def step(self) -> None:
        self.deployment.step()

    def pass_time(self, span: timedelta) -> None:
        """Let everything happen that happens in this time."""
        self.pass_until(self.now + span)

    def pass_until(self, end: datetime) -> None:
        while (following := self.deployment.step()) is not None and following <= end:
            if following <= self.now:
                raise AssertionError(f"What was due at {following.isoformat()} is not dealt with.")
            self.clock.move(following)
        self.clock.move(max(end, self.now))
        self.deployment.step()

    def tick(self) -> None:
        """EventBridge Scheduler calls, out of turn."""
        self.deployment.invoke("tick", events.scheduled("tick", at=self.now, event_id=self.dice.nonce()))

    def send_raw(self, body: str, queue: str = "normal") -> None:
        """A message that nobody of ours wrote."""
        self.deployment.sqs.send_message(QueueUrl=self._url(queue), MessageBody=body)

    def api(self, method: str, path: str, body: object = None, *, key: str | None = None) -> tuple[int, Any]:
        """What the function `api` answers to an admin; `FunctionFailed` where it does not."""
        caller = Caller("test", PrincipalKind.TOKEN, DEFAULT, Role.ADMIN, is_platform=True)
        headers = {"content-type": "application/json"} | ({"idempotency-key": key} if key else {})
        event = {
            "resource": "/{proxy+}",
            "path": path,
            "httpMethod": method,
            "headers": headers,
            "multiValueHeaders": {name: [value] for name, value in headers.items()},
            "queryStringParameters": None,
            "multiValueQueryStringParameters": None,
            "pathParameters": {"proxy": path.removeprefix("/")},
            "requestContext": {"stage": "api", "path": f"/api{path}", "authorizer": to_context(caller)},
            "body": json.dumps(body) if body is not None else None,
            "isBase64Encoded": False,
        }
        answer = self.deployment.invoke("api", event)
        return answer["statusCode"], json.loads(answer["body"]) if answer["body"] else None

    # What is there.

    def look(self, run: Run | RunKey) -> Run:
        found = self.world.runs.get(run if isinstance(run, RunKey) else run.key)
        assert found is not None
        return found

    def runs(self, name: str) -> list[Run]:
        """Every run of a job, oldest first."""
        return self.world.runs.of_job(JobKey(DEFAULT, JobName(name)), newest_first=False, limit=1_000)

    def ledger(self, name: str, *, until: datetime | None = None) -> list[LedgerRow]:
        """Everything that was owed so far."""
        return ledger(self.world, JobKey(DEFAULT, JobName(name)), since=START, until=until or self.now)

    def history(self) -> Mapping[RunKey, Sequence[Run]]:
        """Every revision of every run that was ever accepted, in order."""
        found: defaultdict[RunKey, list[Run]] = defaultdict(list)
        for change in changes(self.deployment.names.table(RUNS), beyond=0):
            image = change["dynamodb"].get("NewImage", {})
            if image.get("sk", {}).get("S", "").startswith("r#") and "rv" in image:
                run = run_of(image)
                found[run.key].append(run)
        return found

    def waiting(self, queue: str = "normal") -> int:
        """How many messages a queue holds, seen or unseen."""
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        names.append("ApproximateNumberOfMessagesDelayed")
        answer = self.deployment.sqs.get_queue_attributes(QueueUrl=self._url(queue), AttributeNames=names)
        return sum(int(answer["Attributes"][name]) for name in names)

    def dead(self) -> list[DeadLetter]:
        return self.world.inbox.dead(most=100)

    def undelivered(self) -> int:
        """How many events were put aside that no function took."""
        return self.waiting(UNDELIVERED)

    def _url(self, queue: str) -> str:
        return str(self.deployment.sqs.get_queue_url(QueueName=self.deployment.names.queue(queue))["QueueUrl"])


class _Idle:
    """What runs tasks for a rival: it never comes so far."""

    def execute(self, call: Call) -> Outcome:
        raise AssertionError(f"{call.run.key} was to be run by nobody.")


@contextmanager
def opened(tmp: Path, **more: Any) -> Iterator[Place]:
    """A place that is there while it is needed."""
    place = Place(tmp, **more)
    with place.deployment:
        yield place
