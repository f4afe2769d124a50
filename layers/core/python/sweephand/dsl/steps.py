"""`step`: a task of a job that is no function of the file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sweephand.dsl.recording import FIELDS, under_way
from sweephand.dsl.tasks import camel
from sweephand.dsl.values import plain
from sweephand.dsl.where import wrong

__all__ = ["step"]


def step(id_: str, /, *, run: Mapping[str, Any] | None = None, needs: Any = (), map: Any = None, **said: Any) -> Any:
    """A task of any kind: `step("pack", command=["tar", "cf", "a.tar"])`, `step("pause", wait={"for": "5m"})`.

    `run` is what a job file has there; without it, what is said beside the options of a task is the step, `lambda_`
    for `lambda`. Answers what it will come to, as the call of a task does.
    """
    recording = under_way()
    if recording is None:
        raise wrong(f"step('{id_}', …) stands in the body of a job: nothing can run it here.")
    options: dict[str, Any] = {name: said.pop(name) for name in FIELDS if name in said}
    if run is not None and said:
        raise wrong(f"'run' of step '{id_}' says it all: put {', '.join(sorted(said))} into it.")
    written = (
        plain(run, f"run of '{id_}'")
        if run is not None
        else {camel(name): plain(value, f"{name} of '{id_}'") for name, value in said.items() if value is not None}
    )
    if not isinstance(written, dict) or not written:
        raise wrong(f"Step '{id_}' says nothing to run: give it command=[…], http={{…}}, wait={{…}} or run={{…}}.")
    added = recording.add(id_, written, options, over=map)
    if needs:
        recording.order(needs, added)
    return added
