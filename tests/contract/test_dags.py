"""The contract of `Dags`: one of many advances a run, none misses an end, and one of many wakes who sleeps."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from msgspec.structs import replace

from sweephand.domain.ids import RunKey
from sweephand.domain.progress import CHANGED_MAX, Progress
from tests.contract.samples import MINUTE, NOW, SECOND, STRANGE, TICK, key_of, run_at
from tests.contract.world import Stores

RUN = run_at().key
STATES = bytes(range(256))
INSTANCES = {3: b"\x00\x14", 700: b"\x25" * 400}


def fresh(run: RunKey = RUN, nonce: str = "born", **fields: Any) -> Progress:
    return Progress(run, **{"states": STATES, "looked_at": NOW + TICK, "nonce": nonce, **fields})


def later(before: Progress, nonce: str = "next", **changes: Any) -> Progress:
    """What somebody who has seen all of it makes of it."""
    return before.moved(nonce=nonce, **{"changed": frozenset(), "states": before.states[::-1], **changes})


def begun(stores: Stores, **fields: Any) -> Progress:
    return stores.dags.begin(fresh(**fields))


def now(stores: Stores, run: RunKey = RUN) -> Progress:
    found = stores.dags.get(run)
    assert found is not None
    return found


def asleep(stores: Stores, token: str = "token") -> Progress:
    before = begun(stores)
    assert stores.dags.sleep(before, token)
    return now(stores)


def noted(stores: Stores, *tasks: str, run: RunKey = RUN) -> Progress:
    """Whether it names them or not, it says who sleeps."""
    answer, found = stores.dags.note(run, tasks), now(stores, run)
    assert answer is not None
    assert replace(answer, changed=found.changed) == found
    return found


def test_of_a_run_that_nobody_began_there_is_nothing(stores: Stores) -> None:
    assert stores.dags.get(RUN) is None
    assert stores.dags.note(RUN, ["a"]) is None
    assert stores.dags.note(RUN, []) is None
    assert stores.dags.absorb(fresh(), later(fresh())) is None
    assert not stores.dags.sleep(fresh(), "token")
    assert not stores.dags.waking(fresh(token="token"), until=NOW)
    stores.dags.woken(fresh(token="token"))
    assert stores.dags.get(RUN) is None


def test_what_was_begun_is_there_and_whoever_begins_it_again_is_told(stores: Stores) -> None:
    first = begun(stores, instances=INSTANCES, generation=2, waves=7)
    assert first == now(stores) == fresh(instances=INSTANCES, generation=2, waves=7)
    assert stores.dags.begin(fresh(nonce="other", states=b"")) == first
    known = noted(stores, "a")
    assert stores.dags.begin(fresh()) == known
    assert now(stores) == known


@pytest.mark.parametrize("states", [b"", b"\x00", STATES * 40])
def test_vectors_come_back_byte_by_byte(stores: Stores, states: bytes) -> None:
    first = stores.dags.begin(replace(fresh(), states=states))
    after = later(first, states=states + b"\xff", instances=INSTANCES)
    assert stores.dags.absorb(first, after) == after == now(stores)
    again = later(after, "again", instances={}, looked_at=NOW + MINUTE, generation=1, waves=3)
    assert stores.dags.absorb(after, again) == again == now(stores)


def test_of_two_who_advance_one_moves_it(stores: Stores) -> None:
    before = begun(stores)
    mine, other = later(before, "mine"), later(before, "other", states=b"other")
    assert stores.dags.absorb(before, mine) == mine
    assert stores.dags.absorb(before, other) is None
    assert now(stores) == mine


def test_whoever_repeats_an_advance_is_recognised_until_the_next(stores: Stores) -> None:
    before = begun(stores)
    mine = later(before, "mine")
    for _ in range(3):
        assert stores.dags.absorb(before, mine) == mine
    known = noted(stores, "a")
    assert stores.dags.absorb(before, mine) == known, "and is told what came since"
    theirs = later(mine, "theirs")
    stores.dags.absorb(mine, theirs)
    assert stores.dags.absorb(before, mine) is None


def test_what_ended_is_named_once_and_counted_each_time(stores: Stores) -> None:
    begun(stores)
    assert noted(stores, "a").noted == 1
    assert noted(stores, "b", "a").noted == 2
    assert noted(stores).noted == 3
    assert now(stores).changed == {"a", "b"}


def test_an_advance_leaves_what_came_since_it_looked(stores: Stores) -> None:
    begun(stores)
    before = noted(stores, "a", "b")
    since = noted(stores, "b", "c")
    assert stores.dags.absorb(before, later(before)) == later(before, changed=frozenset("c"), noted=since.noted)
    left = now(stores)
    assert stores.dags.absorb(left, later(left, "then", changed=left.changed)) is not None
    assert now(stores).changed == {"c"}, "also where an advance has looked at nothing"


def test_tasks_and_instances_may_be_called_anything(stores: Stores) -> None:
    names = [name for name in STRANGE if name]
    begun(stores)
    before = noted(stores, *names, "load[0]", "load[10]")
    assert before.changed == {*names, "load[0]", "load[10]"}
    after = stores.dags.absorb(before, later(before))
    assert after is not None
    assert after.changed == set()


def test_so_many_ends_that_they_cannot_all_be_named_are_seen_to_be(stores: Stores) -> None:
    begun(stores)
    for batch in range(3):
        noted(stores, *(f"{'a' * 100}[{batch}{number:03}]" for number in range(CHANGED_MAX // 2)))
    crowded = now(stores)
    assert crowded.is_crowded
    assert crowded.noted == 3
    assert stores.dags.absorb(crowded, later(crowded)) == later(crowded)


def test_one_who_has_seen_everything_may_sleep(stores: Stores) -> None:
    before = begun(stores)
    for _ in range(2):
        assert stores.dags.sleep(before, "token")
        assert now(stores) == replace(before, token="token")


def test_one_who_has_not_seen_an_end_or_a_move_may_not_sleep(stores: Stores) -> None:
    before = begun(stores)
    unseen = noted(stores, "a")
    assert not stores.dags.sleep(before, "token")
    known = later(unseen)
    stores.dags.absorb(unseen, known)
    assert not stores.dags.sleep(unseen, "token")
    assert now(stores).token is None
    assert stores.dags.sleep(known, "token")
    assert not stores.dags.sleep(before, "late")
    assert now(stores).token == "token"


def test_an_end_without_a_name_keeps_awake_too(stores: Stores) -> None:
    before = begun(stores)
    noted(stores)
    assert not stores.dags.sleep(before, "token")


def test_whoever_advances_is_awake(stores: Stores) -> None:
    sleeper = asleep(stores)
    stores.dags.waking(sleeper, until=NOW + SECOND)
    moved = stores.dags.absorb(now(stores), later(now(stores)))
    assert moved is not None
    assert (moved.token, moved.waking_until) == (None, None) == (now(stores).token, now(stores).waking_until)


def test_of_two_who_wake_a_sleeper_one_does(stores: Stores) -> None:
    sleeper = asleep(stores)
    assert stores.dags.waking(sleeper, until=NOW + SECOND)
    assert not stores.dags.waking(sleeper, until=NOW + 2 * SECOND)
    assert now(stores) == replace(sleeper, waking_until=NOW + SECOND), "and the token is there until it is answered"


def test_whoever_knows_of_one_who_wakes_may_take_over(stores: Stores) -> None:
    sleeper = asleep(stores)
    stores.dags.waking(sleeper, until=NOW + SECOND)
    seen = noted(stores, "a")
    assert stores.dags.waking(seen, until=NOW + MINUTE)
    assert not stores.dags.waking(seen, until=NOW + MINUTE + TICK)
    assert now(stores).waking_until == NOW + MINUTE


@pytest.mark.parametrize("until", [NOW, NOW + TICK, NOW + MINUTE])
def test_one_who_is_awake_is_woken_no_more(stores: Stores, until: datetime) -> None:
    sleeper = asleep(stores)
    stores.dags.waking(sleeper, until=NOW)
    for _ in range(2):
        stores.dags.woken(sleeper)
        assert (now(stores).token, now(stores).waking_until) == (None, None)
    assert not stores.dags.waking(sleeper, until=until)


def test_a_belated_word_of_one_sleep_does_not_end_the_next(stores: Stores) -> None:
    first = asleep(stores)
    stores.dags.waking(first, until=NOW + SECOND)
    assert stores.dags.sleep(now(stores), "second")
    assert now(stores) == replace(first, token="second")
    stores.dags.woken(first)
    assert not stores.dags.waking(first, until=NOW + MINUTE)
    assert now(stores) == replace(first, token="second")


def test_an_end_leaves_the_sleeper_to_whoever_wakes_it(stores: Stores) -> None:
    asleep(stores)
    assert noted(stores, "a").token == "token"


def test_runs_have_nothing_to_do_with_each_other(stores: Stores) -> None:
    runs = [RUN, run_at(run_id=f"{RUN.run_id}.1").key, run_at(job=key_of("a")).key, run_at(job=key_of("a", "b")).key]
    for run in runs:
        stores.dags.begin(fresh(run))
    known = noted(stores, "a", run=runs[1])
    stores.dags.absorb(known, later(known))
    noted(stores, "b", run=runs[2])
    assert stores.dags.sleep(fresh(runs[3]), "token")
    assert now(stores) == fresh()
    assert [now(stores, run).rev for run in runs] == [0, 1, 0, 0]
    assert [now(stores, run).changed for run in runs] == [set(), set(), {"b"}, set()]
    assert [now(stores, run).token for run in runs] == [None, None, None, "token"]
