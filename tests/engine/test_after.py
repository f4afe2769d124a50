"""Jobs that come after other jobs."""

from __future__ import annotations

from datetime import timedelta
from itertools import permutations

import pytest

from sweephand.domain.job import JobStatus
from sweephand.domain.reasons import ReasonCode
from sweephand.domain.run import Run, RunState, Trigger
from sweephand.engine.delete import delete
from sweephand.engine.follow import follow
from sweephand.engine.put import put
from sweephand.engine.release import release
from sweephand.engine.rerun import rerun
from sweephand.engine.rollback import rollback
from sweephand.engine.trigger import trigger
from sweephand.engine.wire import dependents_of
from sweephand.errors import InvalidInput, Unavailable
from sweephand.ports import World
from tests.engine.faults import Fault, dying_before, failing_at, unfollowed, with_another
from tests.engine.world import NS, PERMANENT, Crash, Town, code_of, job

SKEW = timedelta(seconds=90)


def after(
    town: Town, *upstreams: str, name: str = "job", expected: int | None = None, world: World | None = None
) -> None:
    document = {"name": name, "command": "true", "schedule": {"after": list(upstreams)}}
    put(world or town.world, NS, document, actor="ann", expected=expected)


def succeed(town: Town, name: str, *, world: World | None = None) -> Run:
    """A success of the job, a second after the last; nobody has followed it."""
    town.clock.at += timedelta(seconds=1)
    key = trigger(world or town.world, job(name)).key
    town.drive(world)
    run = town.run(key)
    assert run.state is RunState.SUCCEEDED
    return run


def used(town: Town, name: str = "job") -> list[list[str]]:
    """Which upstream runs each run of the job follows, oldest first."""
    return [sorted(run.params["after"].values()) for run in town.runs(name)]


def told(town: Town, *runs: Run, world: World | None = None) -> int:
    return follow(world or town.world, "batch", runs)


def upstreams(town: Town, *names: str) -> None:
    for name in names:
        town.put(name, None)


# One upstream.


def test_each_success_makes_one_run_however_often_it_is_told(either: Town) -> None:
    upstreams(either, "up")
    after(either, "up")
    first, second = succeed(either, "up"), succeed(either, "up")
    assert told(either, second, first, second) == 2
    assert told(either, first, second) == 0
    either.drive()
    runs = either.runs()
    assert [(run.trigger, run.state) for run in runs] == [(Trigger.DEPENDENCY, RunState.SUCCEEDED)] * 2
    assert used(either) == [[first.key.run_id], [second.key.run_id]]
    assert {call.params["after"]["up"] for call in either.calls()} == {first.key.run_id, second.key.run_id}


def test_only_a_success_makes_a_run(town: Town) -> None:
    upstreams(town, "up")
    after(town, "up")
    town.target.answers("up", PERMANENT)
    trigger(town.world, job("up"))
    assert town.follow("up") == 0  # it is queued
    town.drive()
    assert town.follow("up") == 0  # it failed
    assert town.runs() == []


def test_a_rerun_that_succeeds_makes_a_run_of_its_own(town: Town) -> None:
    upstreams(town, "up")
    after(town, "up")
    first = succeed(town, "up")
    again = rerun(town.world, first.key)
    town.drive()
    assert town.follow("up") == 2
    assert used(town) == [[first.key.run_id], [again.key.run_id]]


def test_a_chain_goes_on_link_by_link(town: Town) -> None:
    upstreams(town, "a")
    after(town, "a", name="b")
    after(town, "b", name="c")
    succeed(town, "a")
    for link in "abc":
        town.follow(link)
        town.drive()
    assert [run.state for run in town.runs("c")] == [RunState.SUCCEEDED]


def test_a_success_from_before_the_job_makes_no_run(either: Town) -> None:
    upstreams(either, "up")
    before = succeed(either, "up")
    either.clock.at += timedelta(seconds=1)
    after(either, "up")
    assert told(either, before) == 0
    assert either.audit().released == 0


def test_an_edit_that_makes_an_old_job_come_after_another_does_not_reach_back(either: Town) -> None:
    upstreams(either, "up", "job")
    before = succeed(either, "up")
    either.clock.at += timedelta(seconds=1)
    after(either, "up", expected=1)
    assert told(either, before) == 0
    assert either.audit().released == 0
    succeed(either, "up")
    assert either.audit().released == 1


@pytest.mark.parametrize("edit", ["other upstream", "gate", "none", "rollback"])
def test_a_success_belongs_to_the_version_in_force_when_it_came(town: Town, edit: str) -> None:
    upstreams(town, "up", "other")
    after(town, "up")
    if edit == "rollback":
        town.put("job", None, expected=1)
        rollback(town.world, job(), 1, actor="ann")
    success = succeed(town, "up")
    town.clock.at += timedelta(seconds=1)
    version = town.head().version
    match edit:
        case "other upstream":
            after(town, "other", expected=version)
        case "gate":
            after(town, "up", "other", expected=version)
        case _:
            town.put("job", None, expected=version)
    assert [told(town, success), told(town, success)] == [1, 0]
    late = succeed(town, "up")
    assert told(town, late) == 0  # the job no longer waits for this alone


def test_a_paused_job_gets_a_skipped_run_with_the_reason(either: Town) -> None:
    upstreams(either, "up")
    after(either, "up")
    either.pause()
    succeed(either, "up")
    either.follow("up")
    either.drive()
    (run,) = either.runs()
    assert (run.state, code_of(run)) == (RunState.SKIPPED, ReasonCode.PAUSED)
    assert either.calls() == []
    either.resume()
    assert either.audit().released == 0


def test_a_deleted_job_gets_none_and_one_created_again_is_new(town: Town) -> None:
    upstreams(town, "up")
    after(town, "up")
    before = succeed(town, "up")
    delete(town.world, job(), actor="ann")
    assert told(town, before) == 0
    town.clock.at += timedelta(seconds=1)
    after(town, "up")
    assert told(town, before) == 0
    assert told(town, succeed(town, "up")) == 1


def test_a_job_deleted_after_its_run_was_put_gets_a_skipped_run(town: Town) -> None:
    upstreams(town, "up")
    after(town, "up")
    succeed(town, "up")
    told_of = with_another(town.world, "runs.create", lambda: delete(town.world, job(), actor="bob"))
    town.follow("up", world=told_of)
    town.drive()
    assert [(run.state, code_of(run)) for run in town.runs()] == [(RunState.SKIPPED, ReasonCode.DELETED)]


def test_the_audit_finds_a_success_that_nobody_followed(either: Town) -> None:
    upstreams(either, "up")
    after(either, "up")
    succeed(either, "up")
    assert [either.audit().released, either.audit().released] == [1, 0]
    either.drive()
    assert not list(unfollowed(either))


def test_a_run_put_and_not_sent_is_sent_by_its_due_entry(town: Town) -> None:
    upstreams(town, "up")
    after(town, "up")
    succeed(town, "up")
    with pytest.raises(Crash):
        town.follow("up", world=dying_before(town.world, "queue.send"))
    town.advance(minutes=6)
    assert [run.state for run in town.runs()] == [RunState.SUCCEEDED]


def test_one_dependent_that_is_gone_does_not_keep_the_others_waiting(town: Town) -> None:
    upstreams(town, "up")
    for name in ("a", "b", "c"):
        after(town, "up", name=name)
    delete(town.world, job("b"), actor="ann")
    assert told(town, succeed(town, "up")) == 2


# Several upstreams.


def test_a_gate_opens_each_time_that_all_have_succeeded_anew(either: Town) -> None:
    upstreams(either, "left", "right")
    after(either, "left", "right")
    one = succeed(either, "left")
    assert told(either, one) == 0
    two = succeed(either, "right")
    assert told(either, two) == 1
    assert told(either, one, two, two, one) == 0
    three = succeed(either, "right")
    four = succeed(either, "right")
    assert told(either, three, four) == 0
    five = succeed(either, "left")
    assert told(either, five, four, three) == 1
    assert used(either) == [sorted((one.key.run_id, two.key.run_id)), sorted((four.key.run_id, five.key.run_id))]
    either.drive()
    assert {run.state for run in either.runs()} == {RunState.SUCCEEDED}


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_a_gate_opens_once_in_whatever_order_its_successes_are_told(town: Town, order: tuple[int, ...]) -> None:
    names = ("a", "b", "c")
    upstreams(town, *names)
    after(town, *names)
    runs = [succeed(town, name) for name in names]
    assert sum(told(town, runs[place]) for place in (*order, *order)) == 1
    assert used(town) == [sorted(run.key.run_id for run in runs)]


def test_a_gate_knows_a_success_though_many_failures_came_after_it(town: Town) -> None:
    upstreams(town, "left", "right")
    after(town, "left", "right")
    told(town, succeed(town, "left"))
    town.target.rules["left"] = lambda _call: PERMANENT
    for _ in range(60):
        town.clock.at += timedelta(seconds=1)
        trigger(town.world, job("left"))
    town.drive()
    assert told(town, succeed(town, "right"), *town.runs("left")) == 1


def test_a_success_that_was_used_does_not_wait_again(either: Town) -> None:
    upstreams(either, "left", "right")
    after(either, "left", "right")
    left = succeed(either, "left")
    assert told(either, left, succeed(either, "right"), left) == 1
    assert told(either, left, succeed(either, "right")) == 0
    assert either.audit().released == 0


def test_a_late_word_of_an_old_success_opens_no_gate(town: Town) -> None:
    upstreams(town, "left", "right")
    after(town, "left", "right")
    unheard, heard = succeed(town, "left"), succeed(town, "left")
    assert told(town, heard, succeed(town, "right")) == 1
    assert told(town, unheard) == 0
    assert told(town, succeed(town, "right")) == 0  # left has not succeeded since


@pytest.mark.parametrize("call", ["shared.put", "runs.create", "due.arm"])
def test_a_gate_whose_mover_died_is_finished_by_the_next_before_it_moves_again(town: Town, call: str) -> None:
    upstreams(town, "left", "right")
    after(town, "left", "right")
    first = [succeed(town, "left"), succeed(town, "right")]
    told(town, first[0])
    with pytest.raises(Crash):
        told(town, first[1], world=dying_before(town.world, call))
    second = [succeed(town, "left"), succeed(town, "right")]
    # The one that died is told of again after the next ones were.
    runs = [first[1], *second] if call == "shared.put" else [*second, first[1]]
    assert told(town, *runs) == 2
    assert used(town) == [sorted(run.key.run_id for run in pair) for pair in (first, second)]


def test_two_followers_of_a_gate_make_one_run(either: Town) -> None:
    upstreams(either, "left", "right")
    after(either, "left", "right")
    left, right = succeed(either, "left"), succeed(either, "right")
    rival = with_another(
        either.world, "shared.put", lambda: told(either, right, world=either.another("rival", skew=SKEW))
    )
    assert told(either, left, world=rival) == 1
    assert told(either, left, right) == 0
    assert used(either) == [sorted((left.key.run_id, right.key.run_id))]


def test_a_follower_that_overslept_between_the_gate_and_its_run_makes_no_second(town: Town) -> None:
    upstreams(town, "left", "right")
    after(town, "left", "right")
    left, right = succeed(town, "left"), succeed(town, "right")
    told(town, left)

    def others_go_on() -> None:
        assert told(town, right, succeed(town, "left"), succeed(town, "right"), world=town.another(skew=-SKEW)) == 2
        town.drive()

    assert told(town, right, world=with_another(town.world, "due.arm", others_go_on)) == 0
    assert len(town.runs()) == 2


def test_a_gate_that_everybody_moves_at_once_is_tried_again_later(town: Town) -> None:
    """Were the success taken for followed, its run would be lost."""
    upstreams(town, "left", "right")
    after(town, "left", "right")
    left = succeed(town, "left")
    contended = town.world
    for nth in range(1, 9):
        contended = with_another(
            contended, "shared.put", lambda: told(town, succeed(town, "right"), world=town.another()), nth=nth
        )
    with pytest.raises(Unavailable):
        release(contended, ["job"], left)
    assert told(town, left) == 1


@pytest.mark.parametrize("fault", [Fault.REFUSED, Fault.UNHEARD])
def test_a_gate_whose_answer_was_lost_opens_once(town: Town, fault: Fault) -> None:
    upstreams(town, "left", "right")
    after(town, "left", "right")
    pair = [succeed(town, "left"), succeed(town, "right")]
    for _ in pair:
        with pytest.raises(Unavailable):
            told(town, *pair, world=failing_at(town.world, "shared.put", fault))
    told(town, *pair)
    assert used(town) == [sorted(run.key.run_id for run in pair)]


def test_clocks_apart_do_not_close_a_gate(town: Town) -> None:
    upstreams(town, "left", "right")
    after(town, "left", "right")
    town.clock.at += timedelta(minutes=4)
    for round_ in range(3):
        ahead, behind = (SKEW, -SKEW) if round_ % 2 else (-SKEW, SKEW)
        pair = [
            succeed(town, "left", world=town.another(skew=ahead)),
            succeed(town, "right", world=town.another(skew=behind)),
        ]
        assert told(town, *pair, world=town.another(skew=behind)) == 1
        town.clock.at += timedelta(minutes=4)  # more than two clocks are apart
    town.drive()
    assert [run.state for run in town.runs()] == [RunState.SUCCEEDED] * 3


def test_a_gate_of_a_job_created_again_begins_anew(town: Town) -> None:
    upstreams(town, "left", "right")
    after(town, "left", "right")
    told(town, succeed(town, "left"))
    town.clock.at += timedelta(seconds=1)
    delete(town.world, job(), actor="ann")
    town.clock.at += timedelta(seconds=1)
    after(town, "left", "right")
    assert told(town, succeed(town, "right")) == 0
    assert told(town, succeed(town, "left")) == 1


def test_an_upstream_that_was_taken_out_begins_anew_where_it_comes_back(town: Town) -> None:
    upstreams(town, "a", "b", "c")
    after(town, "a", "b")
    old = [succeed(town, "a"), succeed(town, "b")]
    assert told(town, *old) == 1
    town.clock.at += timedelta(seconds=1)
    after(town, "b", "c", expected=1)
    assert told(town, succeed(town, "b"), succeed(town, "c")) == 1
    after(town, "a", "b", "c", expected=2)
    assert told(town, succeed(town, "b"), succeed(town, "c"), *old) == 0
    assert told(town, succeed(town, "a")) == 1


def test_a_gate_that_became_a_single_upstream_does_not_reach_back(town: Town) -> None:
    upstreams(town, "a", "b")
    after(town, "a", "b")
    old = succeed(town, "a")
    told(town, old)
    town.clock.at += timedelta(seconds=1)
    after(town, "a", expected=1)
    assert told(town, old) == 0
    assert told(town, succeed(town, "a")) == 1


def test_the_audit_opens_a_gate_that_nobody_followed(either: Town) -> None:
    upstreams(either, "left", "right")
    after(either, "left", "right")
    succeed(either, "left")
    succeed(either, "right")
    assert [either.audit().released, either.audit().released] == [1, 0]


def test_a_gates_last_run_is_not_put_again_once_runs_are_forgotten(town: Town) -> None:
    upstreams(town, "left", "right")
    after(town, "left", "right")
    told(town, succeed(town, "left"), succeed(town, "right"))
    town.stores.database.run("DELETE FROM runs WHERE job = ?", (str(job()),))
    town.clock.at += timedelta(days=90)
    assert told(town, succeed(town, "left")) == 0


# Cycles.


def test_a_cycle_is_refused_and_drawn(either: Town) -> None:
    upstreams(either, "a")
    after(either, "a", name="b")
    after(either, "b", name="c")
    with pytest.raises(InvalidInput, match=r"a → b → c → a") as refused:
        after(either, "c", name="a", expected=1)
    assert refused.value.path == "schedule.after"
    assert either.head("a").version == 1


def test_a_rollback_into_a_cycle_is_refused(town: Town) -> None:
    upstreams(town, "a")
    after(town, "a", name="b")
    town.put("b", None, expected=1)
    after(town, "b", name="a", expected=1)
    with pytest.raises(InvalidInput, match="a → b"):
        rollback(town.world, job("b"), 1, actor="ann")


def test_of_two_puts_at_once_that_close_a_cycle_one_is_paused(town: Town) -> None:
    upstreams(town, "a", "b")
    rival = with_another(town.world, "jobs.change", lambda: after(town, "a", name="b", expected=1))
    after(town, "b", name="a", expected=1, world=rival)
    assert [town.head(name).status for name in ("a", "b")] == [JobStatus.PAUSED, JobStatus.ACTIVE]
    note = town.stores.jobs.timeline(job("a"))[-1].note
    assert "a → b → a" in note


def test_a_deleted_job_closes_no_cycle(town: Town) -> None:
    upstreams(town, "a")
    after(town, "a", name="b")
    delete(town.world, job("b"), actor="ann")
    after(town, "b", name="a", expected=1)
    assert dependents_of(town.world, job("b")) == ["a"]


def test_notes_of_one_upstream_written_at_once_are_all_kept(either: Town) -> None:
    upstreams(either, "up")
    after(either, "up", name="c")
    rival = with_another(either.world, "shared.put", lambda: after(either, "up", name="b"))
    after(either, "up", name="a", world=rival)
    assert dependents_of(either.world, job("up")) == ["a", "b", "c"]


def test_the_success_of_a_task_is_not_yet_that_of_its_run(either: Town) -> None:
    tasks = [{"id": one, "run": {"command": ["true"]}} for one in ("a", "b")]
    put(either.world, NS, {"name": "up", "tasks": tasks}, actor="ann", expected=None)
    after(either, "up")
    whole = succeed(either, "up")
    assert told(either, either.run(whole.key.of_task("a")), either.run(whole.key.of_task("b"))) == 0
    assert told(either, whole) == 1
