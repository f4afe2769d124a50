"""The retry budget: earned by starting runs and by time, spent by retrying; who owes waits longer."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from sweephand.domain.budget import HELD_MAX, PER_MINUTE, SAVED_MAX, SHARE, UNCOUNTED, Lately, RetryBudget

NOW = datetime(2027, 6, 15, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
NOTHING = timedelta(0)


def drawn(count: int, *, starts: int = 0, every: timedelta = NOTHING) -> list[timedelta]:
    """How long each of so many retries is held."""
    budget, found, now = RetryBudget(NOW), [], NOW
    for _ in range(count):
        budget = budget.drawn(starts=starts, now=now)
        found.append(budget.held)
        now += every
    return found


def test_ten_retries_a_minute_are_free_for_everybody() -> None:
    assert drawn(10) == [NOTHING] * 10
    assert drawn(500, every=MINUTE / 9) == [NOTHING] * 500


def test_each_further_one_waits_up_to_as_long_as_it_takes_to_earn_it() -> None:
    assert drawn(13)[10:] == [timedelta(seconds=6), timedelta(seconds=12), timedelta(seconds=18)]


def test_no_retry_waits_for_longer_than_the_longest() -> None:
    assert max(drawn(1_000)) == HELD_MAX


def test_what_is_owed_is_earned_again_in_that_time() -> None:
    budget = RetryBudget(NOW)
    for _ in range(1_000):
        budget = budget.drawn(starts=0, now=NOW)
    assert budget.drawn(starts=0, now=NOW + HELD_MAX + MINUTE).held == NOTHING


def test_a_fifth_of_what_is_started_may_be_retried() -> None:
    assert drawn(5_000, starts=round(1 / SHARE)) == [NOTHING] * 5_000
    free = drawn(5_000, starts=1).count(NOTHING)
    assert free == pytest.approx(PER_MINUTE + SHARE * 5_000, abs=1)


def test_only_so_much_is_saved_up() -> None:
    rich = RetryBudget(NOW).drawn(starts=1_000_000, now=NOW + timedelta(days=30))
    assert rich.saved == SAVED_MAX - 1


def test_a_clock_that_goes_back_earns_nothing_and_costs_no_more() -> None:
    budget = RetryBudget(NOW).drawn(starts=0, now=NOW - MINUTE)
    assert budget == RetryBudget(NOW, PER_MINUTE - 1)


def test_it_is_kept_as_it_was() -> None:
    budget = RetryBudget(NOW, 0.25, 3.5)
    assert RetryBudget.decode(budget.encode()) == budget


def test_starts_are_counted_by_namespace_until_they_are_asked_for() -> None:
    lately = Lately()
    for _ in range(3):
        lately.start("a", now=NOW)
    lately.start("b", now=NOW)
    assert [lately.starts(name, now=NOW + MINUTE) for name in ("a", "a", "b", "c")] == [3, 0, 1, 0]


@pytest.mark.parametrize("goes_on", [True, False])
def test_starts_of_long_ago_have_no_say(goes_on: bool) -> None:
    lately = Lately()
    for _ in range(3):
        lately.start("a", now=NOW)
    if goes_on:
        lately.start("a", now=NOW + 5 * MINUTE)
    assert lately.starts("a", now=NOW + 5 * MINUTE) == (1 if goes_on else 0)


def test_the_first_retries_of_a_minute_are_not_counted() -> None:
    lately = Lately()
    for begun in (NOW, NOW + MINUTE):
        free = [lately.retry("a", now=begun + second * timedelta(seconds=1)) for second in range(5)]
        assert free == [True] * UNCOUNTED + [False] * (5 - UNCOUNTED)
    assert lately.retry("b", now=NOW)
