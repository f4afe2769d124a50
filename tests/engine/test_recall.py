"""Results that are taken over: under the same key, of the same step, for a while; and everything else is run."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from sweephand.calls import Succeeded
from sweephand.domain.definition import parse
from sweephand.domain.output import Kept
from sweephand.domain.reasons import Reason, ReasonCode
from sweephand.domain.run import Run, RunState
from sweephand.engine.outputs import output_of
from sweephand.engine.put import put
from sweephand.engine.rerun import rerun
from sweephand.engine.trigger import trigger
from sweephand.engine.why import why_run
from sweephand.errors import InvalidInput, Unavailable
from sweephand.logs import LogKey
from tests.engine.world import NS, START, TRANSIENT, Town, job

CACHE = {"key": "${params.region}-${run.localDate}", "ttl": "1h"}


def saved(town: Town, *, version: int | None = None, **more: Any) -> None:
    document = {"name": "job", "run": {"command": ["report"]}, "cache": CACHE, "params": {"region": "eu"}, **more}
    put(town.world, NS, {field: value for field, value in document.items() if value}, actor="ann", expected=version)


def ran(town: Town, *answers: Any, **params: Any) -> Run:
    town.target.answers("job", *answers)
    key = trigger(town.world, job(), params=params).key
    town.drive()
    town.target.script["job"].clear()
    return town.run(key)


def test_the_same_key_takes_the_output_over_and_nobody_works(either: Town) -> None:
    saved(either)
    first = ran(either, Succeeded({"rows": 3}))
    second = ran(either, Succeeded({"rows": 4}))
    assert (second.state, second.output, second.attempt) == (RunState.SUCCEEDED, {"rows": 3}, 1)
    assert second.reason == Reason(ReasonCode.CACHED, f"cached from run {first.key.run_id}")
    assert why_run(either.world, second.key).status == "succeeded"
    assert len(either.calls()) == 1
    assert first.reason is None


def test_another_key_is_run(either: Town) -> None:
    saved(either)
    ran(either, Succeeded(1))
    assert ran(either, Succeeded(2), region="us").output == 2
    assert ran(either, Succeeded(3), region="us").output == 2
    assert ran(either, Succeeded(3), region="eu").output == 1


def test_its_time_is_over_after_the_ttl_and_what_was_taken_over_does_not_prolong_it(either: Town) -> None:
    saved(either)
    ran(either, Succeeded(1))
    either.advance(minutes=40)
    assert ran(either, Succeeded(2)).output == 1
    either.advance(minutes=21)
    assert ran(either, Succeeded(3)).output == 3


@pytest.mark.parametrize(
    "edit",
    [
        {"run": {"command": ["report", "--all"]}},
        {"run": {"command": ["report"], "env": {"A": "b"}}},
        {"run": None, "tasks": [{"id": "other", "run": {"command": ["report"]}}]},
        {"cache": None},
        {"cache": {**CACHE, "ttl": "1s"}},
    ],
)
def test_an_edit_of_what_is_run_begins_anew(either: Town, edit: dict[str, Any]) -> None:
    saved(either)
    ran(either, Succeeded(1))
    either.advance(minutes=1)
    saved(either, version=1, **edit)
    assert ran(either, Succeeded(2)).output == 2


def test_an_edit_of_all_else_does_not(either: Town) -> None:
    saved(either)
    ran(either, Succeeded(1))
    saved(either, version=1, description="nothing new", timeout="10m")
    assert ran(either, Succeeded(2)).output == 1


def test_a_failure_is_not_taken_over_and_a_rerun_is_always_run(either: Town) -> None:
    saved(either)
    assert ran(either, TRANSIENT).state is RunState.FAILED
    first = ran(either, Succeeded(1))
    either.target.answers("job", Succeeded(2))
    again = rerun(either.world, first.key).key
    either.drive()
    assert either.run(again).output == 2
    assert ran(either, Succeeded(3)).output == 2  # the newest is remembered


def test_jobs_and_namespaces_do_not_share(either: Town) -> None:
    saved(either)
    ran(either, Succeeded(1))
    other = {"name": "other", "run": {"command": ["report"]}, "cache": CACHE, "params": {"region": "eu"}}
    put(either.world, NS, other, actor="ann", expected=None)
    either.target.answers("other", Succeeded(9))
    key = trigger(either.world, job("other")).key
    either.drive()
    assert either.run(key).output == 9


def test_a_large_output_is_taken_over_where_it_is(either: Town) -> None:
    saved(either)

    def kept(call: Any) -> Succeeded:
        either.world.artifacts.keep_output(LogKey(call.run.key, call.task.id, call.run.attempt), b'{"rows": 3}')
        return Succeeded(Kept(call.run.key.run_id, call.task.id, call.run.attempt, 11))

    ran(either, kept)
    assert output_of(either.world.artifacts, ran(either)) == {"rows": 3}


def test_a_large_output_whose_file_is_gone_is_not_taken_over(either: Town) -> None:
    saved(either)
    ran(either, lambda call: Succeeded(Kept(call.run.key.run_id, call.task.id, call.run.attempt, 11)))
    assert ran(either, Succeeded({"rows": 4})).output == {"rows": 4}


def test_a_key_that_means_nothing_fails_the_run_for_good(either: Town) -> None:
    saved(either, params=None, retry={"attempts": 3})
    run = ran(either)
    assert (run.state, run.attempt) == (RunState.FAILED, 1)
    assert run.failure is not None
    assert run.failure.message.startswith("cache.key: '${params.region}' is unknown")


def test_a_store_that_is_away_costs_an_execution_and_nothing_else(town: Town) -> None:
    saved(town)
    ran(town, Succeeded(1))
    runs = town.world.runs

    class Away:
        """The store without its memory."""

        def __getattr__(self, name: str) -> Any:
            if name in {"note", "noted"}:
                raise Unavailable("the store is away")
            return getattr(runs, name)

    town.world = replace(town.world, runs=Away())
    assert ran(town, Succeeded(2)).output == 2
    town.world = replace(town.world, runs=runs)
    assert ran(town, Succeeded(3)).output == 1


@pytest.mark.parametrize(
    ("cache", "path"),
    [
        ({}, "cache.key"),
        ({"key": "a"}, "cache.ttl"),
        ({"key": "a", "ttl": "31d"}, "cache.ttl"),
        ({"key": "a", "ttl": 0}, "cache.ttl"),
        ({"key": "${secrets.KEY}", "ttl": "1h"}, "cache.key"),
        ({"key": "${nobody.x}", "ttl": "1h"}, "cache.key"),
        ({"key": "a", "ttl": "1h", "when": "x"}, "cache.when"),
    ],
)
def test_a_wrong_cache_is_refused_at_its_field(cache: dict[str, Any], path: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse({"name": "job", "command": "x", "cache": cache}, namespace="default", now=START)
    assert path in [where for where, _ in refused.value.errors]
    step = {"id": "one", "command": "x", "cache": cache}
    with pytest.raises(InvalidInput) as refused:
        parse({"name": "job", "tasks": [step]}, namespace="default", now=START)
    assert f"tasks[0].{path}" in [where for where, _ in refused.value.errors]
