"""Putting, editing, pausing, resuming and deleting jobs, also inside the look-ahead."""

from __future__ import annotations

from datetime import timedelta

import pytest

from sweephand.domain.job import CatchupPolicy, JobEvent, JobStatus
from sweephand.domain.reasons import ReasonCode
from sweephand.engine.delete import delete
from sweephand.engine.resume import resume
from sweephand.engine.rollback import rollback
from sweephand.errors import Conflict, NotFound, StaleVersion
from tests.engine.faults import dying_before
from tests.engine.world import START, Crash, Town, at, code_of, job

EVERY_5 = "*/5 * * * *"


def test_a_new_job_fires_from_its_first_instant_on(either: Town) -> None:
    head = either.put(schedule="*/2 * * * *")
    either.advance(minutes=7)
    assert head.version == 1
    assert either.fates() == dict.fromkeys(("12:02", "12:04", "12:06"), "fired")
    assert [call.at for call in either.calls()] == [at("12:02"), at("12:04"), at("12:06")]


def test_a_job_in_ten_seconds_fires_in_ten_seconds_without_a_tick(town: Town) -> None:
    town.put(schedule={"at": (START + timedelta(seconds=10)).isoformat()})
    town.advance(seconds=11, ticking=False)
    assert [call.at for call in town.calls()] == [START + timedelta(seconds=10)]


def test_a_second_job_of_one_name_is_refused(town: Town) -> None:
    town.put()
    with pytest.raises(Conflict, match="exists already"):
        town.put()
    assert town.head().version == 1


@pytest.mark.parametrize("expected", [1, 3])
def test_an_edit_of_another_version_than_the_current_is_refused(town: Town, expected: int) -> None:
    town.put()
    town.put(expected=1)
    with pytest.raises(StaleVersion) as refused:
        town.put(expected=expected)
    assert refused.value.current == 2


def test_an_edit_of_a_job_that_never_was_is_refused(town: Town) -> None:
    with pytest.raises(StaleVersion):
        town.put(expected=1)


def test_a_job_created_again_goes_on_with_its_numbers_and_is_new(town: Town) -> None:
    town.put()
    town.advance(minutes=3)
    delete(town.world, job(), actor="ann")
    town.advance(minutes=3)
    head = town.put()
    assert (head.version, head.status, head.created_at) == (3, JobStatus.ACTIVE, town.clock.at)
    with pytest.raises(NotFound):
        rollback(town.world, job(), 2, actor="ann")  # a tombstone is nothing to go back to


def test_a_rollback_is_a_new_version_with_the_old_content(town: Town) -> None:
    town.put(schedule="*/2 * * * *")
    town.put(schedule="*/3 * * * *", expected=1)
    head = rollback(town.world, job(), 1, actor="ann", expected=2)
    first, third = town.stores.jobs.version(job(), 1), town.stores.jobs.version(job(), 3)
    assert (head.version, third.document) == (3, first.document)
    with pytest.raises(StaleVersion):
        rollback(town.world, job(), 1, actor="ann", expected=2)


def test_changes_follow_each_other_though_a_clock_goes_back(town: Town) -> None:
    first = town.put()
    town.clock.at -= timedelta(seconds=60)
    second = town.put(expected=1)
    third = town.pause()
    assert first.changed_at < second.in_force_since < third.changed_at
    moments = [change.at for change in town.stores.jobs.timeline(job())]
    assert moments == sorted(set(moments))


def test_an_edit_right_after_an_outage_loses_no_fire_of_the_old_schedule(town: Town) -> None:
    town.put(catchup={"policy": "all"})
    town.advance(minutes=7)
    town.sleep_through(minutes=40)
    town.put(schedule="0 0 1 1 *", catchup={"policy": "none"}, expected=1)
    town.advance(minutes=10)
    assert set(town.fates().values()) == {"fired"}
    assert list(town.fates()) == [f"12:{minute:02}" for minute in range(5, 50, 5)]


def test_an_edit_inside_the_look_ahead_voids_what_it_no_longer_names_and_keeps_the_rest(town: Town) -> None:
    town.put(schedule="*/2 * * * *", params={"of": 1})
    town.advance(to=at("12:03"))
    assert [town.states()[fire] for fire in ("12:04", "12:06", "12:08")] == ["planned"] * 3
    town.put(schedule="*/6 * * * *", params={"of": 2}, expected=1)
    town.advance(to=at("12:09"))
    assert [town.states()[fire] for fire in ("12:04", "12:06", "12:08")] == ["void", "succeeded", "void"]
    assert town.fates() == {"12:02": "fired", "12:06": "fired"}
    assert [call.params["of"] for call in town.calls()] == [1, 2]
    assert town.run(at("12:06")).version == 2


def test_an_edit_that_brings_a_fire_into_the_look_ahead_is_honoured(town: Town) -> None:
    town.put(schedule="0 0 1 1 *")
    town.put(schedule="3 12 * * *", expected=1)
    town.advance(minutes=4)
    assert town.fates() == {"12:03": "fired"}


def test_a_delete_inside_the_look_ahead_starts_nothing_after_it(either: Town) -> None:
    either.put(schedule="*/4 * * * *")
    either.advance(to=at("12:05"))
    delete(either.world, job(), actor="ann")
    either.advance(to=at("12:13"))
    assert either.states() == {"12:04": "succeeded", "12:08": "void", "12:12": "void"}
    assert not either.holes()
    with pytest.raises(NotFound):
        delete(either.world, job(), actor="ann")


def test_a_pause_holds_what_is_planned_and_undone_it_goes_on(either: Town) -> None:
    either.put()
    either.advance(to=at("12:07"))
    either.pause()
    either.advance(to=at("12:12"))
    assert either.run(at("12:10")).state == "queued"
    assert code_of(either.run(at("12:10"))) is ReasonCode.PAUSED
    either.resume(catchup="all")
    either.advance(to=at("12:16"))
    assert [call.run.run_id[9:13] for call in either.calls()] == ["1205", "1210", "1215"]
    assert not either.holes()


def test_pausing_twice_and_resuming_twice_change_nothing_more(town: Town) -> None:
    town.put()
    assert town.pause() == town.pause()
    assert town.resume().head.rev < town.head().rev  # its planning moved the cursor
    before = town.head()
    assert town.resume().head == before
    assert [change.event for change in town.stores.jobs.timeline(job())] == [
        JobEvent.PUT,
        JobEvent.PAUSED,
        JobEvent.RESUMED,
    ]


@pytest.mark.parametrize(
    ("catchup", "runs"),
    [("none", []), ("latest", ["12:30"]), ("all", ["12:10", "12:15", "12:20", "12:25", "12:30"])],
)
def test_a_resume_does_what_its_dry_run_said(town: Town, catchup: str, runs: list[str]) -> None:
    town.put()
    town.advance(to=at("12:07"))
    town.pause()
    town.advance(to=at("12:32"))
    foretold = town.resume(catchup=catchup, dry_run=True)
    assert town.head().status is JobStatus.PAUSED
    done = town.resume(catchup=catchup)
    town.advance(to=at("12:34"))
    assert [f"{fire:%H:%M}" for fire in foretold.fires] == runs
    assert (foretold.fires, foretold.dropped) == (done.fires, done.dropped)
    assert sum(one.count for one in foretold.dropped) == 5 - len(runs)
    held = {fire: fate for fire, fate in town.fates().items() if fire > "12:05"}
    assert held == {f"12:{m}": "fired" if f"12:{m}" in runs else "skipped" for m in (10, 15, 20, 25, 30)}
    assert [f"{call.run.run_id[9:11]}:{call.run.run_id[11:13]}" for call in town.calls()[1:]] == runs


def test_a_resume_makes_up_for_at_most_as_many_as_the_job_says(town: Town) -> None:
    town.put(catchup={"policy": "none", "max": 2})
    town.pause()
    town.advance(to=at("12:32"))
    town.resume(catchup="all")
    town.advance(minutes=1)
    assert [fire for fire, fate in town.fates().items() if fate == "fired"] == ["12:25", "12:30"]


def test_edits_during_a_pause_divide_the_fires_that_it_held(town: Town) -> None:
    town.put()
    town.pause()
    town.advance(to=at("12:07"))
    town.put(schedule="*/4 * * * *", expected=1)
    town.advance(to=at("12:22"))
    town.resume(catchup="all")
    town.advance(to=at("12:23"))
    assert town.fates() == dict.fromkeys(("12:05", "12:08", "12:12", "12:16", "12:20"), "fired")
    assert town.states()["12:10"] == "void"  # planned before the edit, held by the pause, and moot by then


def test_a_delete_of_a_paused_job_gives_up_what_the_pause_held(town: Town) -> None:
    town.put()
    town.advance(to=at("12:07"))
    town.pause()
    town.advance(to=at("12:22"))
    delete(town.world, job(), actor="ann")
    town.advance(to=at("12:40"))
    assert town.fates() == {"12:05": "fired", "12:10": "skipped", "12:15": "skipped", "12:20": "skipped"}
    assert all(run.is_terminal for run in town.runs())


def test_a_delete_of_a_paused_job_that_fails_gives_nothing_up(town: Town) -> None:
    town.put()
    town.advance(to=at("12:07"))
    town.pause()
    town.advance(to=at("12:22"))
    with pytest.raises(Crash):
        delete(dying_before(town.world, "jobs.change"), job(), actor="ann")
    town.resume(catchup="all")
    town.advance(to=at("12:24"))
    assert town.fates() == dict.fromkeys(("12:05", "12:10", "12:15", "12:20"), "fired")


def test_what_a_pause_held_is_given_up_although_the_job_is_made_anew_before_its_deletion_is_carried_out(
    town: Town,
) -> None:
    town.put()
    town.advance(to=at("12:07"))
    town.pause()
    town.advance(to=at("12:22"))
    with pytest.raises(Crash):
        delete(dying_before(town.world, "runs.drop"), job(), actor="ann")
    town.put()
    town.advance(to=at("12:41"))
    assert town.fates() == {
        **dict.fromkeys(("12:10", "12:15", "12:20"), "skipped"),
        **dict.fromkeys(("12:05", "12:25", "12:30", "12:35", "12:40"), "fired"),
    }
    assert all(run.is_terminal for run in town.runs() if run.fire_at <= at("12:40"))


def test_a_fire_whose_jitter_reaches_into_a_pause_waits_for_the_resume(town: Town) -> None:
    town.put(schedule={"cron": EVERY_5, "jitter": "4m"})
    jittered = next(run for run in town.runs() if run.start_at > run.fire_at + timedelta(seconds=5))
    town.advance(to=jittered.fire_at + timedelta(seconds=1))
    town.pause()
    town.advance(to=jittered.start_at + timedelta(seconds=30))
    assert code_of(town.run(jittered.key)) is ReasonCode.PAUSED
    town.resume(catchup="none")
    town.advance(minutes=1)
    assert town.run(jittered.key).state == "succeeded"  # its fire time lay before the pause


def test_a_resume_that_stops_half_way_kills_no_run(town: Town) -> None:
    town.put()
    town.advance(to=at("12:07"))
    town.pause()
    town.advance(to=at("12:32"))
    # The switch is made and the messages are sent; the cursor is not moved.
    with pytest.raises(Crash):
        _resume_dying(town)
    town.advance(minutes=15)
    held = {fire: fate for fire, fate in town.states().items() if "12:10" <= fire <= "12:30"}
    assert held == dict.fromkeys(("12:10", "12:15", "12:20", "12:25", "12:30"), "succeeded")


def _resume_dying(town: Town) -> None:
    resume(dying_before(town.world, "jobs.advance"), job(), catchup=CatchupPolicy.ALL, actor="ann")


def test_a_pause_is_refused_where_there_is_no_job(town: Town) -> None:
    with pytest.raises(NotFound):
        town.pause()
    with pytest.raises(NotFound):
        town.resume()
