"""What one job, or one shard, cannot have keeps no other from its own."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from sweephand.domain.ids import spread
from sweephand.domain.ledger import FireStatus
from tests.faults.place import MINUTE, opened
from tests.faults.test_tables import _partition
from tests.moto_world import broken, refused


@pytest.mark.parametrize("code", ["ProvisionedThroughputExceededException", "ValidationException"])
def test_one_job_that_cannot_be_planned_keeps_no_other_from_its_runs(tmp_path: Path, code: str) -> None:
    """Row 14, for longer than the look-ahead; and row 38's neighbours, where the job is malformed for good."""
    with opened(tmp_path) as place:
        for name in ("a-hot", "calm"):
            place.put(name, "*/5 * * * *")
        place.step()
        place.faults = lambda call: refused(call.operation, code) if _partition(call) == "default/a-hot" else None
        place.pass_time(30 * MINUTE)  # twice the look-ahead
        rows = place.ledger("calm")
        assert [(row.status, row.skew_ms) for row in rows] == [(FireStatus.FIRED, 0)] * 6


def test_with_every_fifth_call_broken_the_last_shard_is_swept_too(tmp_path: Path) -> None:
    """Row 19, with as many shards as a deployment has by default."""
    name = next(name for name in (f"job-{n}" for n in range(100)) if spread(f"default/{name}", 8) == 7)
    with opened(tmp_path, shards=8) as place:
        place.put(name, "*/5 * * * *")
        place.step()
        random = Random(3)
        place.faults = lambda call: broken("X") if call.service == "dynamodb" and random.random() < 0.2 else None
        place.pass_time(40 * MINUTE)
        place.faults = lambda _call: None
        place.pass_time(20 * MINUTE)
        assert {row.status for row in place.ledger(name)} == {FireStatus.FIRED}


def test_a_job_that_cannot_be_planned_and_is_alone_in_its_shard_keeps_no_other_shard_from_its_turn(
    tmp_path: Path,
) -> None:
    names = {spread(f"default/job-{n}", 8): f"job-{n}" for n in range(100)}
    first, last = names[0], names[7]
    with opened(tmp_path, shards=8) as place:
        for name in (first, last):
            place.put(name, "*/5 * * * *")
        place.step()
        malformed = f"default/{first}"
        place.faults = lambda call: (
            refused(call.operation, "ValidationException") if _partition(call) == malformed else None
        )
        place.pass_time(40 * MINUTE)
        assert {row.status for row in place.ledger(last)} == {FireStatus.FIRED}
