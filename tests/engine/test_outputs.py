"""Outputs that are kept in files: a run tells them from where they are, and only its own."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from sweephand.calls import Outcome, Succeeded
from sweephand.domain.output import Kept
from sweephand.domain.run import Run, RunState
from sweephand.engine.outputs import output_of
from sweephand.engine.trigger import trigger
from sweephand.logs import LogKey
from tests.engine.world import Town, job


def test_a_run_tells_its_output_from_where_it_is_and_only_its_own(either: Town) -> None:
    either.put("job", None)

    def kept(call: Any) -> Outcome:
        content = b'{"rows": 3}'
        either.world.artifacts.keep_output(LogKey(call.run.key, call.task.id, call.run.attempt), content)
        return Succeeded(Kept(call.run.key.run_id, call.task.id, call.run.attempt, len(content)))

    def ended(*answers: Any) -> Run:
        either.target.answers("job", *answers)
        key = trigger(either.world, job()).key
        either.drive()
        return either.run(key)

    first = ended(kept)
    assert isinstance(first.output, Kept)
    assert output_of(either.world.artifacts, first) == {"rows": 3}
    for stolen in (first.output, {"$kept": {"run": "other", "task": "main", "attempt": 1, "bytes": 1}}):
        refused = ended(Succeeded(stolen))
        assert (refused.state, refused.failure and refused.failure.error) == (RunState.FAILED, "InvalidOutput")
    gone = replace(first, output=replace(first.output, attempt=9))
    assert output_of(either.world.artifacts, gone) is None
