"""Retries: which failures are tried again, when, and when to give up."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweephand.domain.reasons import Reason, ReasonCode
from sweephand.domain.retry import Backoff, Failure, FailureClass, Retry

TRANSIENT = Failure("Throttled", "slow down", FailureClass.TRANSIENT)
PERMANENT = Failure("InvalidInput", "no such table", FailureClass.PERMANENT)

SECOND = timedelta(seconds=1)
chances = st.floats(0, 1, exclude_max=True)
delays = st.timedeltas(timedelta(0), timedelta(days=7))


@pytest.mark.parametrize(
    ("on", "never", "failure", "covered"),
    [
        (("transient",), (), TRANSIENT, True),
        (("transient",), (), PERMANENT, False),
        (("permanent",), (), PERMANENT, True),
        (("permanent",), (), TRANSIENT, False),
        (("transient", "permanent"), (), PERMANENT, True),
        (("transient", "InvalidInput"), (), PERMANENT, True),
        (("InvalidInput",), (), TRANSIENT, False),
        (("transient",), ("Throttled",), TRANSIENT, False),
        (("transient",), ("Other",), TRANSIENT, True),
        (("transient", "Throttled"), ("Throttled",), TRANSIENT, False),
        (("Throttled",), ("transient",), TRANSIENT, False),
        ((), (), TRANSIENT, False),
    ],
)
def test_names_refine_classes_and_never_wins(
    on: tuple[str, ...], never: tuple[str, ...], failure: Failure, covered: bool
) -> None:
    retry = Retry(attempts=5, on=on, never=never)
    assert retry.covers(failure) is covered
    assert (retry.next_delay(failure, 1, chance=0.5) is not None) is covered


def test_without_a_policy_the_first_try_is_the_only_one() -> None:
    assert Retry().next_delay(TRANSIENT, 1, chance=0.5) is None


@given(st.integers(1, 100), st.integers(1, 200), chances)
def test_a_job_gives_up_after_as_many_failures_as_it_has_attempts(attempts: int, failures: int, chance: float) -> None:
    delay = Retry(attempts=attempts).next_delay(TRANSIENT, failures, chance=chance)
    assert (delay is None) == (failures >= attempts)


@given(delays, st.integers(1, 1000), chances)
def test_a_fixed_delay_is_the_same_each_time(delay: timedelta, failures: int, chance: float) -> None:
    assert Retry(backoff=Backoff.FIXED, delay=delay).wait(failures, chance=chance) == delay


def test_an_exponential_delay_doubles_up_to_its_cap() -> None:
    retry = Retry(delay=10 * SECOND, delay_max=60 * SECOND)
    longest = [retry.wait(failures, chance=1) for failures in range(1, 6)]
    assert longest == [10 * SECOND, 20 * SECOND, 40 * SECOND, 60 * SECOND, 60 * SECOND]
    assert retry.wait(3, chance=0.25) == 10 * SECOND


@given(delays, delays, st.integers(1, 10**6), chances)
def test_full_jitter_is_any_moment_from_now_up_to_the_doubled_delay_and_never_overflows(
    delay: timedelta, delay_max: timedelta, failures: int, chance: float
) -> None:
    wait = Retry(delay=delay, delay_max=delay_max).wait(failures, chance=chance)
    assert timedelta(0) <= wait <= delay_max
    longest = min(delay.total_seconds() * 2.0 ** min(failures - 1, 100), delay_max.total_seconds())
    assert wait.total_seconds() == pytest.approx(longest * chance, abs=1e-6)


@given(st.lists(delays, min_size=1, max_size=9), st.integers(1, 50), chances)
def test_listed_delays_are_taken_in_order_and_the_last_repeats(
    listed: list[timedelta], failures: int, chance: float
) -> None:
    retry = Retry(backoff=Backoff.LIST, delays=tuple(listed))
    assert retry.wait(failures, chance=chance) == (listed + [listed[-1]] * 50)[failures - 1]


@given(st.text(), st.text(), st.sampled_from(FailureClass))
def test_a_failure_comes_back_from_the_store_as_it_was(error: str, message: str, kind: FailureClass) -> None:
    failure = Failure(error, message, kind)
    assert Failure.decode(failure.encode()) == failure


@given(st.sampled_from(ReasonCode), st.text())
def test_a_reason_comes_back_from_its_text_as_it_was(code: ReasonCode, detail: str) -> None:
    assert Reason.of(str(Reason(code, detail))) == Reason(code, detail)
