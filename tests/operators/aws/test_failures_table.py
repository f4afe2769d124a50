"""The table of failures in the docs: every row of it happens, under its name and its class."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import pytest
from msgspec.structs import replace

from sweephand.api.bodies import FailBody
from sweephand.calls import Call, Outcome
from sweephand.domain.ids import Namespace
from sweephand.domain.job import Task
from sweephand.domain.kinds import read_step
from sweephand.domain.retry import Failure, FailureClass, Retry
from sweephand.engine.look import Looking
from sweephand.errors import Unavailable
from sweephand.local.cloud.account import refusal
from sweephand.local.cloud.functions import FunctionFailed
from sweephand.logs import LogKey
from sweephand.messages import Again
from sweephand.operators import Operators, Unpacked
from sweephand.testing.virtual import VirtualClock
from tests.moto_world import Fault, timed_out
from tests.operators.aws.account import Neighbourhood, a_call
from tests.operators.aws.test_short_calls import CALLS
from tests.operators.calls import FIRE_AT, call
from tests.operators.web import Answering, Web, serving

PAGE: Final = (Path(__file__).parents[3] / "docs" / "operators.md").read_text()
ROWS: Final = re.findall(r"^\| (`[^|]+|any) \| `(\w+)` \| (transient|permanent) \|", PAGE, re.MULTILINE)
AWS: Final = ("lambda", "sqs", "sns", "event", "stateMachine", "awsSdk")
REFUSALS: Final = {"ThrottlingException": 400, "InternalError": 500, "AccessDeniedException": 400}
TASKS: Final = """
import time
class Permanent(Exception): pass
def raises(): raise ValueError("no")
def gives_up(): raise Permanent("never")
def sleeps(): time.sleep(60)
def dies():
    import os
    os.kill(os.getpid(), 9)
def leaves(): raise SystemExit(1)
def writes(text):
    import os
    open(os.environ["SWEEPHAND_OUTPUT"], "w").write(text)
"""
SHELL: Final[dict[str, str]] = {
    "ExitCode1": "exit 1",
    "Signal": "kill -9 $$",
    "Timeout": "exec sleep 60",
    "InvalidOutput": 'echo "{" > $SWEEPHAND_OUTPUT',
    "OutputTooLarge": "head -c 1048577 /dev/zero | tr '\\0' 1 > $SWEEPHAND_OUTPUT",
    "OutputNotKept": "printf '\"%05000d\"' 1 > $SWEEPHAND_OUTPUT",
}
FUNCTIONS: Final[dict[str, dict[str, Any]]] = {
    "ExitCode1": {"value": "tasks:leaves"},
    "Signal": {"value": "tasks:dies"},
    "Timeout": {"value": "tasks:sleeps"},
    "NotFound": {"value": "tasks:nobody"},
    "InvalidOutput": {"value": "tasks:writes", "args": ["{"]},
    "OutputTooLarge": {"value": "tasks:writes", "args": ["1" * 1_048_577]},
    "OutputNotKept": {"value": "tasks:writes", "args": ['"' + "1" * 5_000 + '"']},
    "ValueError": {"value": "tasks:raises"},
    "Permanent": {"value": "tasks:gives_up"},
}
NO_CODE: Final = {"CodeNotFound": "0" * 64, "CodeUnavailable": "1" * 64}


class Bench:
    """Everything that can go wrong, in one place."""

    def __init__(self, tmp: Path, place: Neighbourhood, there: Operators, web: Web) -> None:
        self.tmp, self.place, self.there, self.web = tmp, place, there, web
        (tmp / "code").mkdir()
        (tmp / "code" / "tasks.py").write_text(TASKS)
        unpacked = Unpacked(tmp / "unpacked", self._code)
        self.here = Operators(tmp / "work", http_may_reach=("127.0.0.1",), keep_output=self._refuses, code=unpacked)

    @staticmethod
    def _code(_namespace: Namespace, digest: str) -> bytes | None:
        if digest == NO_CODE["CodeUnavailable"]:
            raise Unavailable("the bucket does not answer")
        return None

    @staticmethod
    def _refuses(_key: LogKey, _content: bytes) -> None:
        raise Unavailable("the disk is full")

    def command(self, name: str) -> Outcome:
        if name == "NotFound":
            return self.here.execute(call("command", ["no-such-program"]))
        if name == "NotPermitted":
            return self.here.execute(call("command", [str(self.tmp / "code" / "tasks.py")]))
        return self.here.execute(call("command", SHELL[name], shell=True, timeout_s=1 if name == "Timeout" else 30))

    def python(self, name: str) -> Outcome:
        code = str(self.tmp / "code")
        if name in NO_CODE:
            return self.here.execute(call("python", "tasks:raises", code=NO_CODE[name]))
        given = FUNCTIONS[name]
        args = given.get("args", [])
        return self.here.execute(
            call("python", given["value"], args=args, cwd=code, timeout_s=2 if name == "Timeout" else 30)
        )

    def http(self, name: str) -> Outcome:
        url = self.web.url(f"/{name}")
        options: dict[str, Any] = {}
        if name == "ConnectionRefused":
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                url = f"http://127.0.0.1:{free.getsockname()[1]}/"
        if name == "NameNotResolved":
            url = "http://nobody.invalid/"
        if name == "TargetRefused":
            url = "http://10.0.0.1/"
        if name == "ResponseTooLarge":
            options = {"maxBytes": 1}
        return self.here.execute(call("http", None, url=url, timeout_s=1 if name == "Timeout" else 20, **options))

    def aws(self, kind: str, name: str) -> Outcome:
        given: Any = CALLS[kind]
        if name == "InvalidInput":
            unlisted = {
                "event": {"event": {"source": "s", "type": "t", "bus": "other"}},
                "awsSdk": {"awsSdk": {"service": "s3", "action": "ListBuckets"}},
            }
            given = unlisted.get(kind, {kind: "other"})
        elif name == "Locked":
            self.place.functions["load-sales"] = _locked
        elif name in {"TimedOut", "Aborted"}:
            self.place.ended["bake"] = {"status": {"TimedOut": "TIMED_OUT", "Aborted": "ABORTED"}[name]}
            self.there.execute(a_call(given))
        else:
            error = timed_out().error if name == "Timeout" else refusal(name, "Op", status=REFUSALS[name])
            self.place.faults = [Fault(error)]
        return self.there.execute(a_call(given))

    def sensor(self, name: str) -> Outcome:
        nobody = SimpleNamespace(runs=None, clock=VirtualClock(FIRE_AT))
        looking = Looking(self.here, nobody)  # type: ignore[arg-type]  # no run is looked at
        if name == "Http403":
            return _not_elsewhere(looking.execute(_look(self.web.url("/Http403"))))
        late = _look(self.web.url("/Http404"))
        began = replace(late.run, started_at=FIRE_AT.replace(year=2020))
        return _not_elsewhere(looking.execute(replace(late, run=began)))

    def any(self, name: str) -> Outcome:
        if name == "UnknownOperator":
            return self.here.execute(call("nothing", None))
        return self.here.execute(call("command", ["${params.nothing}"]))


def _look(url: str) -> Call:
    step = read_step({"sensor": {"http": {"url": url}}}, "run")
    return replace(call("sensor", None), task=Task("main", *step))


def _not_elsewhere(outcome: Any) -> Outcome:
    assert isinstance(outcome, Failure | Again)
    return outcome


def _locked(_event: Any) -> Any:
    raise FunctionFailed("Locked", "somebody else loads")


def _hangs(asked: Answering) -> None:
    asked.web.closing.wait(30)


@pytest.fixture
def web() -> Iterator[Web]:
    routes: dict[str, Callable[[Answering], None]] = {
        "/Http403": lambda asked: asked.answer(403),
        "/Http404": lambda asked: asked.answer(404),
        "/Http500": lambda asked: asked.answer(500),
    }
    routes["/Timeout"] = _hangs
    routes["/ResponseTooLarge"] = lambda asked: asked.answer(200, b"xx")
    routes["/TooManyRedirects"] = lambda asked: asked.answer(302, Location="/TooManyRedirects")
    with serving(routes) as server:
        yield server


@pytest.fixture
def bench(tmp_path: Path, place: Neighbourhood, there: Operators, web: Web) -> Bench:
    return Bench(tmp_path, place, there, web)


CASES: Final = [
    (operator.strip("` "), name, kind) for operators, name, kind in ROWS for operator in operators.split(",")
]


def test_the_table_is_there_and_names_every_operator() -> None:
    assert len(ROWS) > 25
    known = {"command", "python", "http", "sensor", "external", "any", *AWS}
    assert {operator for operator, _, _ in CASES} == known
    assert len(set(CASES)) == len(CASES)


@pytest.mark.parametrize(("operator", "name", "kind"), CASES)
def test_a_row_of_the_table_is_what_happens(bench: Bench, operator: str, name: str, kind: str) -> None:
    if operator == "external":
        assert FailBody(epoch=1).kind is FailureClass(kind)
        return
    outcome = bench.aws(operator, name) if operator in AWS else getattr(bench, operator)(name)
    assert isinstance(outcome, Failure), outcome
    assert (outcome.error, str(outcome.kind)) == (name, kind), outcome


@pytest.mark.parametrize(
    ("error", "kind", "policy", "again"),
    [
        ("ExitCode75", "transient", {}, True),
        ("ExitCode2", "transient", {"never": ("ExitCode2",)}, False),
        ("ExitCode3", "transient", {"never": ("ExitCode2",)}, True),
        ("ExitCode3", "transient", {"never": ("ExitCode",)}, False),
        ("ExitCode75", "transient", {"on": ("ExitCode75",)}, True),
        ("ExitCode1", "transient", {"on": ("ExitCode75",)}, False),
        ("Http404", "permanent", {"on": ("Http404",)}, True),
        ("Http404", "permanent", {"on": ("Http4xx",)}, True),
        ("Http503", "transient", {"never": ("Http5xx",)}, False),
        ("Http503", "transient", {"never": ("Http4xx",)}, True),
        ("Locked", "permanent", {"on": ("transient", "Locked")}, True),
        ("Locked", "permanent", {"on": ("Locked",), "never": ("permanent",)}, False),
    ],
)
def test_a_job_refines_it_by_name(error: str, kind: str, policy: dict[str, Any], again: bool) -> None:
    assert Retry(**policy).covers(Failure(error, "", FailureClass(kind))) is again
