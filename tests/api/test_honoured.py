"""A pause, an edit and a delete hold from the second in which they are answered, whatever was planned ahead.

One story in real time, with jobs that fire every second; each test looks at one part of what it left behind. That
nothing happens is believed only while a job beside it goes on to fire.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pytest

from sweephand.calls import Call, Outcome, Succeeded
from tests.api.client import Served, Tasks
from tests.api.test_contract import create
from tests.local.waiting import until

EVERY_SECOND = {"schedule": "* * * * * *", "command": "x"}
EVEN_SECONDS = {"schedule": "*/2 * * * * *", "command": "x"}
A_SECOND = timedelta(seconds=1)
LATER = 4 * A_SECOND
"""Most of the look-ahead: all of these fires were planned before the change."""


class Record:
    """The fire times of what was started, by job."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._fires: dict[str, list[datetime]] = {}

    def __call__(self, call: Call) -> Outcome:
        with self._lock:
            self._fires.setdefault(call.run.key.job.name, []).append(call.run.fire_at)
        return Succeeded()

    def of(self, job: str) -> list[datetime]:
        with self._lock:
            return sorted(self._fires.get(job, []))

    def reached(self, job: str, fire_at: datetime) -> bool:
        return any(fire >= fire_at for fire in self.of(job))


@dataclass(frozen=True)
class Story:
    """What happened: the fires that started, when each change was made, and what was planned then."""

    served: Served
    record: Record
    changed_at: dict[str, datetime]
    planned: dict[str, list[datetime]]

    def later_fires(self, job: str) -> list[datetime]:
        """What was started of the fires at or after the job's change."""
        return [fire for fire in self.record.of(job) if fire >= self.changed_at[job]]

    def ledger(self, job: str) -> list[Any]:
        return self.served.admin.get(f"/jobs/{job}/ledger").expect(200).items


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    record = Record()
    jobs = ("beat", "paused", "edited", "deleted")
    with Served(tmp_path_factory.mktemp("honoured"), Tasks(**dict.fromkeys(jobs, record))) as served:
        admin = served.admin
        for name in jobs:
            create(admin, name, **EVERY_SECOND)
        served.runtime.start()
        until(lambda: all(len(record.of(name)) >= 2 for name in jobs), within_s=15, what="every job has fired twice")
        planned = {name: _planned(served, name) for name in jobs}
        paused = admin.post("/jobs/paused/pause").expect(200).json["updatedAt"]
        edited = admin.put("/jobs/edited", EVEN_SECONDS, If_Match="1").expect(200).json["updatedAt"]
        admin.delete("/jobs/deleted").expect(204)
        deleted = admin.get("/jobs/deleted?include=deleted").expect(200).json["updatedAt"]
        answered_at = served.clock.now()
        changed_at = {
            "paused": datetime.fromisoformat(paused),
            "edited": datetime.fromisoformat(edited),
            "deleted": datetime.fromisoformat(deleted),
        }
        assert all(at <= answered_at for at in changed_at.values())
        until(lambda: record.reached("beat", answered_at + LATER), within_s=15, what="the job beside them goes on")
        yield Story(served, record, changed_at, planned)
        assert served.runtime.defects == 0


def _planned(served: Served, job: str) -> list[datetime]:
    """Fires that have become runs although their time has not come."""
    runs = served.admin.get(f"/jobs/{job}/runs?include=planned").expect(200).items
    return [datetime.fromisoformat(run["fireAt"]) for run in runs if run["tasks"][0]["state"] == "waiting"]


def test_the_story_is_about_fires_that_were_planned_already(story: Story) -> None:
    for job, at in story.changed_at.items():
        assert len([fire for fire in story.planned[job] if fire >= at]) >= 2, job


def test_the_job_beside_them_missed_no_second(story: Story) -> None:
    fires = story.record.of("beat")
    assert fires == [fires[0] + n * A_SECOND for n in range(len(fires))]


def test_after_a_pause_no_later_fire_starts(story: Story) -> None:
    assert story.later_fires("paused") == []
    at = story.changed_at["paused"]
    for row in story.ledger("paused"):
        is_before = datetime.fromisoformat(row["fireAt"]) < at
        assert row["status"] == ("fired" if is_before else "pending"), row


def test_after_an_edit_only_the_new_schedule_s_fires_start(story: Story) -> None:
    later = story.later_fires("edited")
    assert [fire for fire in later if fire.second % 2] == []
    at = story.changed_at["edited"]
    first = at.replace(microsecond=0) + A_SECOND
    first += A_SECOND * (first.second % 2)
    assert later[:2] == [first, first + 2 * A_SECOND]
    assert {row["status"] for row in story.ledger("edited")} <= {"fired", "pending"}


def test_after_a_delete_nothing_starts(story: Story) -> None:
    assert story.later_fires("deleted") == []
    assert story.record.of("deleted")
    at = story.changed_at["deleted"]
    assert all(datetime.fromisoformat(row["fireAt"]) < at for row in story.ledger("deleted"))
    states = {run["state"] for run in story.served.admin.get("/jobs/deleted/runs").expect(200).items}
    assert states <= {"succeeded"}


def test_up_to_its_change_every_job_missed_no_second(story: Story) -> None:
    for job, at in story.changed_at.items():
        fires = [fire for fire in story.record.of(job) if fire < at]
        assert fires == [fires[0] + n * A_SECOND for n in range(len(fires))], job
        assert at - fires[-1] <= A_SECOND, job
