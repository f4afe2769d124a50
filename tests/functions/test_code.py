"""Functions of packs in the real `execute`, and under an agent: the code comes from S3, and from its own namespace."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sweephand.domain.ids import DEFAULT, JobKey, JobName, Namespace
from sweephand.domain.run import Run, RunState
from sweephand.domain.zips import digest_of, zipped
from sweephand.engine.put import put
from sweephand.engine.trigger import trigger
from sweephand.errors import InvalidInput
from sweephand.packs import Pack
from tests.functions.test_execute import LONG, SHORT, Place
from tests.local.launched import on_moto

SALES = zipped(
    {
        "sales.py": b"from sweephand import task\nfrom shop.words import word\n"
        b"@task\ndef load(region): return {'region': region, 'word': word()}\n"
        b"@task\ndef join(parts): return [part['region'] + part['word'] for part in parts]\n",
        "shop/__init__.py": b"",
        "shop/words.py": b"def word(): return '!'\n",
    }
)
DIGEST = digest_of(SALES)


class CodePlace(Place):
    """Where every read of S3 is counted."""

    def __init__(self, tmp: Path) -> None:
        super().__init__(tmp)
        self.fetched: list[str] = []

    def _around(self, call: Any, perform: Any) -> Any:
        if call.operation == "GetObject":
            self.fetched.append(call.params["Key"])
        return super()._around(call, perform)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[CodePlace]:
    place = CodePlace(tmp_path)
    with place.deployment:
        yield place


def keep(place: CodePlace, content: bytes = SALES, namespace: Namespace = DEFAULT) -> str:
    place.deployment.world.packs.keep(namespace, Pack(digest_of(content), content))
    return digest_of(content)


def begin(place: CodePlace, run: dict[str, Any], **more: Any) -> Run:
    head = put(
        place.deployment.world,
        DEFAULT,
        {"name": "job", "run": run, "timeout": SHORT, **more},
        actor="test",
        expected=None,
    )
    found = trigger(place.deployment.world, head.key, params={"region": "eu"})
    place.deployment.step()
    return place.look(found)


@pytest.mark.parametrize("timeout", [SHORT, LONG])
def test_execute_fetches_the_code_of_a_function_once(place: CodePlace, timeout: str) -> None:
    step = {"python": "sales:load", "kwargs": {"region": "${params.region}"}, "code": keep(place)}
    run = begin(place, step, timeout=timeout)
    assert (run.state, run.output) == (RunState.SUCCEEDED, {"region": "eu", "word": "!"})
    trigger(place.deployment.world, JobKey(DEFAULT, JobName("job")), params={"region": "us"})
    place.deployment.step()
    assert place.fetched == [f"code/default/{DIGEST}.zip"]


def test_outputs_flow_through_a_map_to_the_last_task(place: CodePlace) -> None:
    code = keep(place)
    document = {
        "name": "dag",
        "timeout": SHORT,
        "tasks": [
            {
                "id": "load",
                "map": {"over": ["eu", "us"]},
                "run": {"python": "sales:load", "kwargs": {"region": "${item}"}, "code": code},
            },
            {
                "id": "join",
                "needs": ["load"],
                "run": {"python": "sales:join", "kwargs": {"parts": "${tasks.load.output}"}, "code": code},
            },
        ],
    }
    world = place.deployment.world
    head = put(world, DEFAULT, document, actor="test", expected=None)
    run = trigger(world, head.key)
    place.pass_time(minutes=2)
    assert place.look(run).state is RunState.SUCCEEDED
    joined = world.runs.get(run.key.of_task("join"))
    assert joined is not None
    assert joined.output == ["eu!", "us!"]


def test_code_that_is_gone_fails_for_good_and_a_bucket_that_does_not_answer_is_asked_again(place: CodePlace) -> None:
    step = {"python": "sales:load", "kwargs": {"region": "eu"}, "code": keep(place)}
    place.refused["GetObject"] = "SlowDown"
    run = begin(place, step, retry={"attempts": 2, "delays": ["1s"]})
    assert (run.state, run.attempt) == (RunState.RETRYING, 1)
    del place.refused["GetObject"]
    place.pass_time(seconds=30)
    assert place.look(run).state is RunState.SUCCEEDED


def test_another_namespaces_code_is_no_code(place: CodePlace) -> None:
    keep(place, namespace=Namespace("another"))
    with pytest.raises(InvalidInput, match="There is no code"):
        begin(place, {"python": "sales:load", "code": DIGEST})


def test_bytes_that_are_not_what_they_are_named_for_are_not_run(place: CodePlace) -> None:
    """Whoever can write to the bucket still cannot say what runs."""
    bad = zipped({"sales.py": b"def load(region): return 'hacked'\n"})
    place.deployment.world.packs.keep(DEFAULT, Pack(DIGEST, bad))
    run = begin(place, {"python": "sales:load", "kwargs": {"region": "eu"}, "code": DIGEST})
    assert run.state is RunState.FAILED
    assert run.failure is not None
    assert (run.failure.error, run.output) == ("CodeUnavailable", None)


def test_an_agent_fetches_the_code_of_a_long_function(tmp_path: Path) -> None:
    with on_moto(tmp_path) as place:
        place.world.packs.keep(DEFAULT, Pack(DIGEST, SALES))
        step = {"python": "sales:load", "kwargs": {"region": "eu"}, "code": DIGEST}
        run = place.ended(place.begin(step))
        assert (run.state, run.output) == (RunState.SUCCEEDED, {"region": "eu", "word": "!"})
