"""Several processes on one file, and what survives when one is killed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from sweephand.clock import SystemClock
from sweephand.embedded import Stores, open_stores
from sweephand.messages import AttemptRun, decode
from sweephand.ports import Lane, Letter
from tests.contract.rival import ROUNDS, all_told, rival, tell, told
from tests.contract.samples import (
    HOUR,
    NOW,
    SECOND,
    key_of,
    run_at,
)


def test_of_two_processes_on_one_file_one_wins_each_race(tmp_path: Path) -> None:
    path = tmp_path / "sweephand.db"
    stores = open_stores(path, clock=SystemClock())
    stores.queue.send([Letter(AttemptRun(run_at(NOW + n * SECOND).key)) for n in range(2 * ROUNDS)])
    with rival("race", path, "a") as one, rival("race", path, "b") as two:
        assert told(one) == told(two) == "ready"
        tell(one)
        tell(two)
        said = [all_told(one), all_told(two)]
    won = Counter(line for lines in said for line in lines)
    assert {line for line, times in won.items() if times > 1} == set()
    assert sum(line.startswith("created") for line in won) == ROUNDS
    assert sum(line.startswith("claimed") for line in won) == ROUNDS
    assert sum(line.startswith("received") for line in won) == 2 * ROUNDS
    assert sum(line.startswith("climbed") for line in won) == ROUNDS
    stores.close()


def test_processes_that_open_a_new_file_at_once_all_succeed(tmp_path: Path) -> None:
    path = tmp_path / "sweephand.db"
    with ExitStack() as stack:
        processes = [stack.enter_context(rival("open", path, f"p{n}")) for n in range(4)]
        assert {told(process) for process in processes} == {"ready"}
        for process in processes:
            tell(process)
        assert [told(process) for process in processes] == [f"p{n} 8" for n in range(4)]


@pytest.mark.parametrize("acknowledged", [1, 50, 400])
def test_what_was_acknowledged_survives_kill_9(tmp_path: Path, acknowledged: int) -> None:
    path = tmp_path / "sweephand.db"
    with rival("write", path) as process:
        keys = [told(process) for _ in range(acknowledged)]
        process.kill()
        assert process.stdout is not None
        keys += [line.strip() for line in process.stdout if line.endswith("\n")]
    stores = open_stores(path, clock=SystemClock())
    written = {str(run.key) for n in range(4) for run in stores.runs.of_job(key_of(f"rival-{n}"), limit=100_000)}
    sent = {str(message.run) for message in _drained(stores) if isinstance(message, AttemptRun)}
    assert set(keys) <= written
    assert set(keys) <= sent <= written
    assert stores.database.rows("PRAGMA integrity_check") == [("ok",)]
    stores.close()


def _drained(embedded: Stores) -> Iterator[object]:
    while deliveries := embedded.inbox.receive(Lane.NORMAL, most=100, hold=HOUR):
        yield from (decode(delivery.body) for delivery in deliveries)
