"""The contract of `Replies`: one holder at a time, and the answer for everybody who asks the same again."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from hypothesis import given, settings
from msgspec.structs import replace

from sweephand.domain.ids import Namespace
from sweephand.ports import Reply
from tests.contract.samples import DEFAULT, HOUR, MINUTE, NOW, SECOND, STRANGE, TICK, fresh_key, texts
from tests.contract.world import Stores

UNTIL: Final = NOW + 24 * HOUR
MINE: Final = Reply("asked", "me", NOW + MINUTE)
YOURS: Final = Reply("asked", "you", NOW + HOUR)


def answered(reply: Reply, answer: str = '{"status": 201}') -> Reply:
    return replace(reply, answer=answer)


def reserve(stores: Stores, reply: Reply, at: datetime = NOW, *, key: str = "key", until: datetime = UNTIL) -> Reply:
    return stores.replies.reserve(DEFAULT, key, reply, now=at, until=until)


def settle(stores: Stores, reply: Reply, *, key: str = "key", until: datetime = UNTIL) -> bool:
    return stores.replies.settle(DEFAULT, key, reply, until=until)


def test_the_first_to_come_holds_the_key(stores: Stores) -> None:
    assert reserve(stores, MINE) == MINE
    assert reserve(stores, YOURS) == MINE
    assert reserve(stores, YOURS, NOW + MINUTE) == MINE


def test_a_repeated_reservation_finds_its_own(stores: Stores) -> None:
    assert reserve(stores, MINE) == MINE
    assert reserve(stores, replace(MINE, held_until=NOW + HOUR), NOW + SECOND) == MINE


def test_an_answer_is_there_for_everybody(stores: Stores) -> None:
    reserve(stores, MINE)
    assert settle(stores, answered(MINE))
    for reply in (MINE, YOURS, replace(YOURS, fingerprint="something else")):
        assert reserve(stores, reply, NOW + 2 * HOUR) == answered(MINE)


def test_a_repeated_answer_changes_nothing(stores: Stores) -> None:
    reserve(stores, MINE)
    assert settle(stores, answered(MINE))
    assert settle(stores, answered(MINE))
    assert reserve(stores, YOURS) == answered(MINE)


def test_an_empty_answer_is_an_answer(stores: Stores) -> None:
    reserve(stores, MINE)
    assert settle(stores, answered(MINE, ""))
    assert reserve(stores, YOURS, NOW + 2 * HOUR) == answered(MINE, "")


def test_a_holder_out_of_time_is_followed_by_the_next_who_asks_the_same(stores: Stores) -> None:
    reserve(stores, MINE)
    assert reserve(stores, YOURS, MINE.held_until) == MINE
    assert reserve(stores, YOURS, MINE.held_until + TICK) == YOURS
    assert reserve(stores, MINE, MINE.held_until + TICK) == YOURS


def test_a_holder_out_of_time_stays_against_who_asks_something_else(stores: Stores) -> None:
    reserve(stores, MINE)
    other = replace(YOURS, fingerprint="something else")
    assert reserve(stores, other, NOW + HOUR) == MINE
    assert settle(stores, answered(MINE))


def test_a_holder_who_was_followed_cannot_answer(stores: Stores) -> None:
    reserve(stores, MINE)
    reserve(stores, YOURS, NOW + 2 * MINUTE)
    assert not settle(stores, answered(MINE, "late"))
    assert reserve(stores, MINE, NOW + 3 * MINUTE) == YOURS
    assert settle(stores, answered(YOURS))
    assert not settle(stores, answered(MINE, "later"))
    assert reserve(stores, MINE, NOW + 3 * MINUTE) == answered(YOURS)


def test_a_holder_out_of_time_whom_nobody_followed_can_answer(stores: Stores) -> None:
    reserve(stores, MINE)
    assert settle(stores, answered(MINE))
    assert reserve(stores, YOURS, NOW + 2 * MINUTE) == answered(MINE)


def test_an_answer_to_a_key_that_nobody_holds_is_stored(stores: Stores) -> None:
    assert settle(stores, answered(MINE))
    assert reserve(stores, YOURS) == answered(MINE)


def test_a_reply_is_forgotten_after_its_end(stores: Stores) -> None:
    other = replace(YOURS, fingerprint="something else")
    reserve(stores, MINE, until=NOW + MINUTE)
    assert settle(stores, answered(MINE), until=NOW + HOUR)
    assert reserve(stores, other, NOW + HOUR) == answered(MINE)
    assert reserve(stores, other, NOW + HOUR + TICK) == other
    assert not settle(stores, answered(MINE))


def test_a_reservation_is_forgotten_after_its_end_whatever_was_asked(stores: Stores) -> None:
    other = replace(YOURS, fingerprint="something else")
    reserve(stores, replace(MINE, held_until=NOW + 9 * HOUR), until=NOW + MINUTE)
    assert reserve(stores, other, NOW + MINUTE + TICK) == other


def test_a_key_that_was_given_up_is_free(stores: Stores) -> None:
    reserve(stores, MINE)
    for _ in range(2):
        stores.replies.release(DEFAULT, "key", MINE)
    other = replace(YOURS, fingerprint="something else")
    assert reserve(stores, other) == other


def test_only_its_holder_can_give_a_key_up(stores: Stores) -> None:
    reserve(stores, MINE)
    stores.replies.release(DEFAULT, "key", YOURS)
    stores.replies.release(DEFAULT, "another key", MINE)
    assert reserve(stores, YOURS) == MINE
    reserve(stores, YOURS, NOW + 2 * MINUTE)
    stores.replies.release(DEFAULT, "key", MINE)
    assert reserve(stores, MINE, NOW + 3 * MINUTE) == YOURS


def test_an_answer_is_not_given_up(stores: Stores) -> None:
    reserve(stores, MINE)
    settle(stores, answered(MINE))
    stores.replies.release(DEFAULT, "key", MINE)
    assert reserve(stores, YOURS) == answered(MINE)


def test_a_key_may_be_anything_and_long(stores: Stores) -> None:
    long = [f"{letter * 999}{last}" for letter in ("x", "ä", "🕰", "#") for last in "yz"]
    keys = [*STRANGE, *long]
    for n, key in enumerate(keys):
        assert reserve(stores, replace(MINE, holder=f"{n}"), key=key).holder == f"{n}"
    assert [reserve(stores, YOURS, key=key).holder for key in keys] == [f"{n}" for n in range(len(keys))]


def test_each_namespace_has_keys_of_its_own(stores: Stores) -> None:
    names = [Namespace(name) for name in ("default", "default-2", "other")]
    for name in names:
        mine = replace(MINE, holder=name)
        assert stores.replies.reserve(name, "key", mine, now=NOW, until=UNTIL) == mine
        assert stores.replies.settle(name, "key", answered(mine, name), until=UNTIL)
    stores.replies.release(names[0], "key", replace(MINE, holder=names[0]))
    for name in names:
        assert stores.replies.reserve(name, "key", YOURS, now=NOW, until=UNTIL).answer == name


def test_replies_are_apart_from_remembered_values(stores: Stores) -> None:
    assert stores.runs.remember(DEFAULT, "key", "value", until=UNTIL) == "value"
    assert reserve(stores, MINE) == MINE
    assert stores.runs.remember(DEFAULT, "key", "another", until=UNTIL) == "value"


def test_any_reply_comes_back(stores: Stores, examples: settings) -> None:
    @examples
    @given(fingerprint=texts, holder=texts, answer=texts)
    def check(fingerprint: str, holder: str, answer: str) -> None:
        key = fresh_key().name
        mine = Reply(fingerprint, holder, NOW + TICK)
        assert reserve(stores, mine, key=key) == mine
        assert reserve(stores, YOURS, key=key) == mine
        assert settle(stores, answered(mine, answer), key=key)
        assert reserve(stores, YOURS, key=key) == answered(mine, answer)

    check()
