"""Runs of several tasks on AWS, as tests tell and see them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from sweephand.calls import Outcome, Succeeded
from sweephand.domain.dag import state_of
from sweephand.domain.ids import DEFAULT, JobKey, JobName, RunKey
from sweephand.domain.retry import Failure, FailureClass
from sweephand.engine.insist import insist
from sweephand.engine.lookup import graph_of, version_of
from sweephand.engine.put import put
from sweephand.engine.trigger import trigger
from sweephand.local.cloud.machines import Execution
from sweephand.orders import encode_outcome
from sweephand.topology import DAG_RUN
from tests.faults.place import Effect, Place

SOURCES: Final = ("high", "normal", "low", "machines")
"""What a run of several tasks needs, where nothing goes wrong."""
PERMANENT: Final = Failure("InvalidInput", "cannot ever work", FailureClass.PERMANENT)
TRANSIENT: Final = Failure("Hiccup", "came back empty", FailureClass.TRANSIENT)

Answer = Outcome | Callable[[Effect], Outcome]


def task(name: str, *needs: str, **more: Any) -> dict[str, Any]:
    return {"id": name, "needs": list(needs), "run": {"command": ["true"]}, "timeout": "30s", **more}


def chain(count: int) -> list[dict[str, Any]]:
    """Each needs the one before it."""
    return [task(f"t{n}", *([f"t{n - 1}"] if n else [])) for n in range(count)]


def begun(place: Place, *tasks: dict[str, Any], answers: Mapping[str, Answer] | None = None, **more: Any) -> RunKey:
    """A triggered run of a job with these tasks; each answers as is said, or succeeds."""

    def does(effect: Effect) -> Any:
        answer = (answers or {}).get(effect.run.task, Succeeded())
        return encode_outcome(answer(effect) if callable(answer) else answer)

    put(place.world, DEFAULT, {"name": "job", "tasks": list(tasks), **more}, actor="test", expected=None)
    place.target.does["job"] = does
    return trigger(place.world, JobKey(DEFAULT, JobName("job"))).key


def states(place: Place, key: RunKey) -> dict[str, str]:
    """Every task's state, as the last advance knew it."""
    run, progress = place.look(key), place.world.dags.get(key)
    definition = version_of(place.world, key.job, run.version or 0).job
    assert definition is not None
    assert progress is not None
    tasks = graph_of(place.world, key.job, run.version or 0, definition).tasks
    return {one.id: str(state_of(byte)) for one, byte in zip(tasks, progress.states, strict=True)}


def order(place: Place) -> list[str]:
    """The tasks in the order in which they were begun."""
    return [effect.run.task for effect in place.target.effects]


def executions(place: Place) -> list[Execution]:
    """Those that advanced runs."""
    machine = place.deployment.names.machine(DAG_RUN)
    return [one for one in place.deployment.machines.executions if one.machine == machine]


def execution(place: Place) -> Execution:
    (only,) = executions(place)
    return only


def stop(place: Place, ended: Execution) -> None:
    """Somebody ends an execution, of whom we never hear."""
    arn = f"arn:aws:states:us-east-1:123456789012:execution:{ended.machine}:{ended.name}"
    place.client("stepfunctions").stop_execution(executionArn=arn)


def calls(place: Place, operation: str) -> int:
    return sum(call.operation == operation for call in place.calls)


def has_advanced(place: Place, key: RunKey, waves: int) -> None:
    """The execution has been at it for so long already."""
    dags = place.world.dags

    def moved() -> bool:
        progress = dags.get(key)
        assert progress is not None
        later = progress.moved(nonce=place.dice.nonce(), waves=waves, changed=progress.changed)
        return dags.absorb(progress, later) is not None and (
            progress.token is None or dags.sleep(later, progress.token)
        )

    assert insist(moved)
