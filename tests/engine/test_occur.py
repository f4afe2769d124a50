"""Events from elsewhere make runs of the jobs that listen for them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from sweephand.domain.events import Event
from sweephand.domain.ids import Namespace
from sweephand.domain.reasons import ReasonCode
from sweephand.domain.run import RunState, Trigger
from sweephand.engine.delete import delete
from sweephand.engine.occur import occur
from tests.engine.faults import dying_before, with_another
from tests.engine.world import NS, Crash, Town, code_of, job

ORDER = Event("shop", "order", {"paid": True}, "order-1")


def listens(town: Town, name: str = "job", *, expected: int | None = None, **rule: Any) -> None:
    town.put(name, {"events": [{"source": "shop", **rule}]}, expected=expected)


def test_every_listener_gets_a_run_with_the_event(either: Town) -> None:
    listens(either, "one")
    listens(either, "two", type="order", match={"paid": [True]})
    listens(either, "three", type="refund")
    listens(either, "four", match={"paid": False})
    runs = occur(either.world, NS, ORDER)
    assert [(run.key.job.name, run.trigger, run.state) for run in runs] == [
        ("one", Trigger.EVENT, RunState.QUEUED),
        ("two", Trigger.EVENT, RunState.QUEUED),
    ]
    either.drive()
    (call,) = either.calls("two")
    assert call.params["event"] == {"source": "shop", "type": "order", "id": "order-1", "detail": {"paid": True}}


def test_the_same_id_within_a_day_is_the_same_event(either: Town) -> None:
    listens(either)
    first = occur(either.world, NS, ORDER)
    either.drive()
    either.clock.at += timedelta(hours=23)
    assert [run.key for run in occur(either.world, NS, ORDER)] == [run.key for run in first]
    assert len(either.runs()) == 1


@pytest.mark.parametrize(
    "other",
    [
        Event("shop", "order", {}, "order-2"),
        Event("shop", "order", {}, None),
        Event("shop", "order", {}, ""),
    ],
)
def test_another_id_or_none_is_another_event(town: Town, other: Event) -> None:
    listens(town)
    runs = occur(town.world, NS, ORDER) + occur(town.world, NS, other)
    assert len({run.key for run in runs}) == 2


def test_ids_of_two_sources_do_not_mix(town: Town) -> None:
    town.put("job", {"events": [{"source": "a/b"}, {"source": "a"}]})
    runs = occur(town.world, NS, Event("a/b", "t", {}, "c")) + occur(town.world, NS, Event("a", "t", {}, "b/c"))
    assert len({run.key for run in runs}) == 2


def test_nobody_listens_in_another_namespace(town: Town) -> None:
    listens(town)
    assert occur(town.world, Namespace("other"), ORDER) == []


def test_an_edited_job_listens_as_its_present_version_says(town: Town) -> None:
    listens(town)
    listens(town, expected=1, type="refund")
    assert occur(town.world, NS, ORDER) == []
    town.put(schedule=None, expected=2)
    assert occur(town.world, NS, Event("shop", "refund")) == []


def test_a_paused_listener_gets_a_skipped_run_with_the_reason(either: Town) -> None:
    listens(either)
    either.pause()
    occur(either.world, NS, ORDER)
    either.drive()
    assert [(run.state, code_of(run)) for run in either.runs()] == [(RunState.SKIPPED, ReasonCode.PAUSED)]


@pytest.mark.parametrize("moment", [1, 2, 3, 4, 5, 6])
def test_a_listener_deleted_in_the_middle_does_not_fail_the_others(town: Town, moment: int) -> None:
    for name in ("one", "two", "three"):
        listens(town, name)
    gone = with_another(town.world, "jobs.head", lambda: delete(town.world, job("two"), actor="bob"), nth=moment)
    names = [run.key.job.name for run in occur(gone, NS, ORDER)]
    assert {"one", "three"} <= set(names)


@pytest.mark.parametrize("call", ["runs.remember", "runs.create", "queue.send"])
@pytest.mark.parametrize("nth", [1, 2])
def test_an_event_told_again_after_a_crash_makes_each_run_once(either: Town, call: str, nth: int) -> None:
    listens(either, "one")
    listens(either, "two")
    with pytest.raises(Crash):
        occur(dying_before(either.world, call, nth=nth), NS, ORDER)
    occur(either.world, NS, ORDER)
    either.drive()
    for name in ("one", "two"):
        assert [run.state for run in either.runs(name)] == [RunState.SUCCEEDED]
        assert len(either.calls(name)) == 1
