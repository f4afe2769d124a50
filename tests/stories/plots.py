"""What happens in each story of each kind: a function for each, named KIND_STORY, that begins the run of a scene.

Of a sensor, it is what the sensor looks for that has the stories: `sensor_s3_succeeds`.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from sweephand.calls import Succeeded
from sweephand.clock import SystemClock, SystemDice
from sweephand.domain.ids import RunKey
from sweephand.domain.retry import Failure, FailureClass
from sweephand.domain.run import RunState
from sweephand.embedded import open_stores
from sweephand.engine.cancel import cancel
from sweephand.engine.lease import report
from sweephand.engine.put import put
from sweephand.engine.trigger import trigger
from sweephand.errors import StaleEpoch
from sweephand.local import Runtime
from sweephand.local.cloud.account import refusal
from sweephand.local.cloud.functions import FunctionFailed
from sweephand.operators import Operators
from tests.local.waiting import until
from tests.moto_world import Fault, throttled, timed_out
from tests.operators.aws.account import client
from tests.operators.calls import is_alive
from tests.stories.places import NS, Scene

Step = dict[str, Any]
RETRY = {"attempts": 3, "backoff": "fixed", "delay": "1s"}
FOR_LONG = "import threading; threading.Event().wait(60)"


# command and python


def _script(source: str) -> Step:
    return {"command": [sys.executable, "-c", source]}


def command_succeeds(scene: Scene) -> None:
    scene.begin({"command": ["sh", "-c", "echo hello"]})
    assert scene.run.output == {"stdout": "hello"}


def command_fails(scene: Scene) -> None:
    scene.begin({"command": ["no-such-program"]}, retry=RETRY)


def command_recovers(scene: Scene) -> None:
    source = "import os, sys; sys.exit(os.environ['SWEEPHAND_ATTEMPT'] == '1')"
    scene.begin(_script(source), retry=RETRY)


def command_times_out(scene: Scene) -> None:
    scene.begin({"command": ["sleep", "60"]}, timeout=0.3)


def command_is_cancelled(scene: Scene) -> None:
    pid = scene.place.folder / "command.pid"
    source = f"import os; open({str(pid)!r}, 'w').write(str(os.getpid())); "
    if scene.place.name == "moto":
        _cancelled_in_the_function(scene, _script(source))
        return
    with _runtime(scene.place.folder, _script(source + FOR_LONG)) as (runtime, key):
        until(lambda: pid.exists() and pid.read_text() != "", within_s=20, what="it runs")
        cancel(runtime.world, key, actor="test")
        until(lambda: not is_alive(int(pid.read_text())), within_s=20, what="it is gone")
        _still_cancelled(runtime, key)


def _module(scene: Scene, body: str) -> Step:
    name = f"module_{scene.key.name.replace('-', '_')}"
    folder = scene.place.folder / name
    folder.mkdir()
    (folder / f"{name}.py").write_text(f"import os\nclass Permanent(Exception): pass\ndef work():\n    {body}\n")
    return {"python": f"{name}:work", "cwd": str(folder)}


def python_succeeds(scene: Scene) -> None:
    scene.begin(_module(scene, "return {'rows': 3}"))
    assert scene.run.output == {"rows": 3}


def python_fails(scene: Scene) -> None:
    scene.begin(_module(scene, "raise Permanent('no such table')"), retry=RETRY)


def python_recovers(scene: Scene) -> None:
    scene.begin(_module(scene, "assert os.environ['SWEEPHAND_ATTEMPT'] != '1'"), retry=RETRY)


def python_times_out(scene: Scene) -> None:
    scene.begin(_module(scene, FOR_LONG), timeout=0.5)


def python_is_cancelled(scene: Scene) -> None:
    pid = scene.place.folder / "python.pid"
    waits = "" if scene.place.name == "moto" else FOR_LONG
    run = _module(scene, f"open({str(pid)!r}, 'w').write(str(os.getpid())); {waits}")
    if scene.place.name == "moto":
        _cancelled_in_the_function(scene, run)
        return
    with _runtime(scene.place.folder, run) as (runtime, key):
        until(lambda: pid.exists() and pid.read_text() != "", within_s=20, what="it runs")
        cancel(runtime.world, key, actor="test")
        until(lambda: not is_alive(int(pid.read_text())), within_s=20, what="it is gone")
        _still_cancelled(runtime, key)


# http


def _url(scene: Scene, answers: Callable[[Any], None]) -> Step:
    path = f"/{scene.key.name}"
    scene.place.web.routes[path] = answers
    return {"http": {"url": scene.place.web.url(path)}}


def _drips(call: Any) -> None:
    call.send_response(200)
    call.send_header("Content-Length", "1000000")
    call.end_headers()
    call.drip()


def http_succeeds(scene: Scene) -> None:
    scene.begin(_url(scene, lambda call: call.answer(200, b"hello")))
    assert scene.run.output["body"] == "hello"


def http_fails(scene: Scene) -> None:
    scene.begin(_url(scene, lambda call: call.answer(404)), retry=RETRY)


def http_recovers(scene: Scene) -> None:
    statuses = iter((503, 200))
    scene.begin(_url(scene, lambda call: call.answer(next(statuses))), retry=RETRY)


def http_times_out(scene: Scene) -> None:
    scene.begin(_url(scene, _drips), timeout=0.3)


def http_is_cancelled(scene: Scene) -> None:
    if scene.place.name == "moto":
        _cancelled_in_the_function(scene, _url(scene, lambda call: call.answer(200)))
        return
    begun = threading.Event()

    def answers(call: Any) -> None:
        begun.set()
        _drips(call)

    scene.place.web.hung_up.clear()
    run = _url(scene, answers)
    with _runtime(scene.place.folder, run) as (runtime, key):
        assert begun.wait(20)
        cancel(runtime.world, key, actor="test")
        assert scene.place.web.hung_up.wait(20)
        _still_cancelled(runtime, key)


# What calls AWS once: a fault, or a cancellation, meets that call.


def _calls(scene: Scene, run: Step, operation: str, *happens: Fault | Callable[[], None], **more: Any) -> None:
    scene.place.aws.next[f"call.{operation}"].extend(happens)
    scene.begin(run, **more)


def _aws(run: Step, operation: str) -> dict[str, Callable[[Scene], None]]:
    """The five stories of a call whose answer is its success."""

    def succeeds(scene: Scene) -> None:
        _calls(scene, run, operation)
        assert f"call.{operation}" in scene.place.aws.calls

    def fails(scene: Scene) -> None:
        _calls(scene, run, operation, Fault(refusal("AccessDeniedException", operation, status=403)), retry=RETRY)

    def recovers(scene: Scene) -> None:
        _calls(scene, run, operation, throttled(operation), retry=RETRY)

    def times_out(scene: Scene) -> None:
        _calls(scene, run, operation, timed_out())

    def is_cancelled(scene: Scene) -> None:
        _calls(scene, run, operation, scene.cancel, retry=RETRY)

    return {one.__name__: one for one in (succeeds, fails, recovers, times_out, is_cancelled)}


SENT = {
    "sqs": _aws({"sqs": "orders", "body": "x"}, "SendMessage"),
    "sns": _aws({"sns": "news", "message": "x"}, "Publish"),
    "event": _aws({"event": {"source": "shop", "type": "closed", "bus": "shop"}}, "PutEvents"),
    "awsSdk": _aws({"awsSdk": {"service": "dynamodb", "action": "ListTables"}}, "ListTables"),
}


def lambda_succeeds(scene: Scene) -> None:
    scene.place.functions["load-sales"] = lambda event: {"job": event["sweephand"]["job"]}
    scene.begin({"lambda": "load-sales"})
    assert scene.run.output == {"job": scene.key.name}


def lambda_fails(scene: Scene) -> None:
    def fails(_event: Any) -> Any:
        raise FunctionFailed("ValueError", "no such region")

    scene.place.functions["load-sales"] = fails
    scene.begin({"lambda": "load-sales"}, retry=RETRY)


def lambda_recovers(scene: Scene) -> None:
    scene.place.functions["load-sales"] = lambda _event: 3
    _calls(scene, {"lambda": "load-sales"}, "Invoke", throttled("Invoke"), retry=RETRY)


def lambda_times_out(scene: Scene) -> None:
    scene.place.functions["load-sales"] = lambda _event: 3
    _calls(scene, {"lambda": "load-sales"}, "Invoke", timed_out())


def lambda_is_cancelled(scene: Scene) -> None:
    scene.place.functions["load-sales"] = lambda _event: scene.cancel()
    scene.begin({"lambda": "load-sales"}, retry=RETRY)


def stateMachine_succeeds(scene: Scene) -> None:
    scene.begin({"stateMachine": "bake"})
    assert scene.waits
    scene.place.aws.execution = {"status": "SUCCEEDED", "output": '{"loaves": 3}'}
    scene.place.advance(seconds=10)
    assert scene.run.output == {"loaves": 3}


def stateMachine_fails(scene: Scene) -> None:
    scene.place.aws.execution = {"status": "FAILED", "error": "Oven.Cold"}
    scene.begin({"stateMachine": "bake"}, retry=RETRY)


def stateMachine_recovers(scene: Scene) -> None:
    scene.place.aws.execution = {"status": "SUCCEEDED"}
    _calls(scene, {"stateMachine": "bake"}, "StartExecution", throttled("StartExecution"), retry=RETRY)


def stateMachine_times_out(scene: Scene) -> None:
    before = scene.stopped()
    scene.begin({"stateMachine": "bake"}, timeout="1m")
    scene.place.advance(minutes=2)
    assert scene.stopped() == before + 1


def stateMachine_is_cancelled(scene: Scene) -> None:
    before = scene.stopped()
    scene.begin({"stateMachine": "bake"}, timeout="5m")
    assert scene.waits
    scene.cancel()
    scene.place.advance(minutes=1)
    until(lambda: scene.stopped() == before + 1, within_s=10, what="the execution is stopped")


# external


def _report(scene: Scene, outcome: Succeeded | Failure) -> None:
    scene.place.advance(seconds=5)
    leased = scene.lease()
    report(scene.place.world, leased.lease.id, NS, epoch=leased.lease.run.epoch, outcome=outcome)


def _external(scene: Scene, **more: Any) -> None:
    scene.begin({"external": {"queue": scene.key.name}}, **more)


def external_succeeds(scene: Scene) -> None:
    _external(scene)
    _report(scene, Succeeded({"rows": 3}))
    assert scene.run.output == {"rows": 3}


def external_fails(scene: Scene) -> None:
    _external(scene, retry=RETRY)
    _report(scene, Failure("BadInput", "no such region", FailureClass.PERMANENT))


def external_recovers(scene: Scene) -> None:
    _external(scene, retry=RETRY)
    _report(scene, Failure("Down", "try again"))
    _report(scene, Succeeded())


def external_times_out(scene: Scene) -> None:
    _external(scene, runTimeout="1m")
    scene.lease()
    scene.place.advance(minutes=3)


def external_is_cancelled(scene: Scene) -> None:
    _external(scene, retry=RETRY)
    leased = scene.lease()
    scene.cancel()
    with pytest.raises(StaleEpoch):
        report(scene.place.world, leased.lease.id, NS, epoch=leased.lease.run.epoch, outcome=Succeeded())


# wait and sensor


def wait_succeeds(scene: Scene) -> None:
    scene.begin({"wait": {"for": "2m"}})
    assert scene.waits
    scene.place.advance(minutes=3)


def wait_fails(scene: Scene) -> None:
    scene.begin({"wait": {"for": "${params.long}"}}, params={"long": "soon"}, retry=RETRY)


def wait_times_out(scene: Scene) -> None:
    scene.begin({"wait": {"for": "2m"}}, runTimeout="1m")
    scene.place.advance(minutes=3)


def wait_is_cancelled(scene: Scene) -> None:
    scene.begin({"wait": {"for": "2m"}})
    assert scene.waits
    scene.cancel()
    scene.place.advance(minutes=3)


def sensor_job_succeeds(scene: Scene) -> None:
    found = scene.other("sensed", {"command": ["true"]})
    assert found.state is RunState.SUCCEEDED
    scene.begin({"sensor": {"job": "sensed"}})
    assert scene.run.output["runId"] == found.key.run_id


def sensor_job_recovers(scene: Scene) -> None:
    assert scene.other("unsteady", {"command": ["no-such-program"]}).state is RunState.FAILED
    scene.begin({"sensor": {"job": "unsteady", "every": "1m"}}, retry=RETRY)
    assert scene.waits
    put(scene.place.world, NS, {"name": "unsteady", "command": "true"}, actor="test", expected=1)
    trigger(scene.place.world, _named(scene, "unsteady"))
    scene.place.advance(minutes=3)


def sensor_job_times_out(scene: Scene) -> None:
    scene.begin({"sensor": {"job": "absent", "timeout": "2m"}}, retry=RETRY)
    scene.place.advance(minutes=4)


def sensor_job_is_cancelled(scene: Scene) -> None:
    scene.begin({"sensor": {"job": "absent"}}, retry=RETRY)
    assert scene.waits
    scene.cancel()
    scene.place.advance(minutes=2)


def _file(scene: Scene, **more: Any) -> Step:
    return {"sensor": {"s3": {"bucket": "inbox", "key": f"orders/{scene.key.name}"}, "every": "1m", **more}}


def _comes(scene: Scene) -> None:
    client("s3").put_object(Bucket="inbox", Key=f"orders/{scene.key.name}", Body=b"hello")


def _looks(scene: Scene) -> int:
    return scene.place.aws.calls.count("call.ListObjectsV2")


def sensor_s3_succeeds(scene: Scene) -> None:
    scene.begin(_file(scene))
    assert scene.waits
    _comes(scene)
    scene.place.advance(minutes=2)
    assert (scene.run.output["size"], _looks(scene)) == (5, 2)


def sensor_s3_fails(scene: Scene) -> None:
    denied = Fault(refusal("AccessDenied", "ListObjectsV2", status=403))
    _calls(scene, _file(scene), "ListObjectsV2", denied, retry=RETRY)
    assert scene.run.failure is not None
    assert scene.run.failure.error == "AccessDenied"


def sensor_s3_recovers(scene: Scene) -> None:
    _comes(scene)
    _calls(scene, _file(scene), "ListObjectsV2", throttled("ListObjectsV2"), timed_out(), retry=RETRY)
    assert scene.waits
    scene.place.advance(minutes=3)
    assert _looks(scene) == 3


def sensor_s3_times_out(scene: Scene) -> None:
    scene.begin(_file(scene, timeout="2m"), retry=RETRY)
    scene.place.advance(minutes=4)
    assert _looks(scene) == 3


def sensor_s3_is_cancelled(scene: Scene) -> None:
    """While it looks for what is there: nobody wants to know any more."""
    scene.begin(_file(scene), retry=RETRY)
    assert scene.waits
    _comes(scene)
    scene.place.aws.next["call.ListObjectsV2"].append(scene.cancel)
    scene.place.advance(minutes=2)
    assert _looks(scene) == 2


def _page(scene: Scene, answers: Callable[[Any], None], **more: Any) -> Step:
    return {"sensor": {**_url(scene, answers), "every": "1m", **more}}


def _asked(scene: Scene) -> int:
    return sum(one.target == f"/{scene.key.name}" for one in scene.place.web.asked)


def sensor_http_succeeds(scene: Scene) -> None:
    answers = iter(((404, b""), (200, b"hello")))
    scene.begin(_page(scene, lambda call: call.answer(*next(answers))))
    assert scene.waits
    scene.place.advance(minutes=2)
    assert (scene.run.output["size"], _asked(scene)) == (5, 2)


def sensor_http_fails(scene: Scene) -> None:
    away = {"Location": "http://169.254.169.254/latest"}
    led_astray = scene.other("led-astray", _page(scene, lambda call: call.answer(302, **away)))
    assert led_astray.failure is not None
    assert (led_astray.failure.error, led_astray.failure.kind) == ("TargetRefused", FailureClass.PERMANENT)
    scene.begin(_page(scene, lambda call: call.answer(403)), retry=RETRY)
    assert scene.run.failure is not None
    assert scene.run.failure.error == "Http403"


def sensor_http_recovers(scene: Scene) -> None:
    statuses = iter((503, 200))
    scene.begin(_page(scene, lambda call: call.answer(next(statuses))), retry=RETRY)
    assert scene.waits
    scene.place.advance(minutes=2)
    assert _asked(scene) == 2


def sensor_http_times_out(scene: Scene) -> None:
    """Each look ends in time without an answer, and at last the sensor."""
    scene.begin(_page(scene, _drips, timeout="2m"), timeout=0.3, retry=RETRY)
    assert scene.waits
    scene.place.advance(minutes=4)
    assert _asked(scene) == 3


def sensor_http_is_cancelled(scene: Scene) -> None:
    scene.begin(_page(scene, lambda call: call.answer(404)), retry=RETRY)
    assert scene.waits
    scene.cancel()
    scene.place.advance(minutes=2)
    assert _asked(scene) == 1


def _named(scene: Scene, name: str) -> Any:
    return type(scene.key)(NS, type(scene.key.name)(name))


# What is cancelled while it runs.


def _cancelled_in_the_function(scene: Scene, run: Step) -> None:
    """Nobody can stop a function that runs: what it answers then is nobody's."""
    scene.place.aws.next["attempt.Invoke"].append(scene.cancel)
    scene.begin(run, retry=RETRY)


@contextmanager
def _runtime(folder: Path, run: Step) -> Iterator[tuple[Runtime, RunKey]]:
    """In real time, with threads that can be told to stop."""
    clock = SystemClock()
    with closing(open_stores(None, clock=clock)) as stores:
        operators = Operators(folder / "real", http_may_reach=["127.0.0.1"])
        with Runtime(stores, target=operators, clock=clock, dice=SystemDice(), workers=1) as runtime:
            head = put(runtime.world, NS, {"name": "job", "run": run, "retry": RETRY}, actor="test", expected=None)
            yield runtime, trigger(runtime.world, head.key).key


def _still_cancelled(runtime: Runtime, key: RunKey) -> None:
    run = runtime.world.runs.get(key)
    assert run is not None
    assert (run.state, run.attempt) == (RunState.CANCELLED, 1)
