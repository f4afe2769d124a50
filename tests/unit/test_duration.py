"""Durations as people write them."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweephand.domain.duration import format_duration, parse_duration
from sweephand.errors import InvalidInput


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        (90, 90),
        (0, 0),
        (1.5, 1.5),
        (0.0004, 0),
        ("90s", 90),
        ("5m", 300),
        ("1h30m", 5400),
        ("1d", 86_400),
        ("1d2h3m4s5ms", 93_784.005),
        ("500ms", 0.5),
        ("5m500ms", 300.5),
        ("366d", 366 * 86_400),
        ("090s", 90),
    ],
)
def test_a_duration_is_seconds_or_text(written: object, seconds: float) -> None:
    assert parse_duration(written, path="timeout") == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "written",
    [
        True,
        None,
        [],
        {},
        b"5m",
        float("nan"),
        float("inf"),
        -1,
        -0.5,
        10**400,
        1e300,
        "",
        "5",
        "5 m",
        " 5m",
        "5m\n",
        "m",
        "1m1h",
        "5m5m",
        "1.5h",
        "-5m",
        "+5m",
        "5M",
        "٥m",
        "367d",
        "9" * 10_000 + "s",
        "P1D",
    ],
)
def test_what_is_no_duration_is_refused_with_its_path(written: object) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_duration(written, path="retry.delay")
    assert refused.value.path == "retry.delay"
    assert len(refused.value.message) < 200


def test_bounds_are_inclusive_and_named() -> None:
    second, minute = timedelta(seconds=1), timedelta(minutes=1)
    assert parse_duration(60, path="jitter", at_least=second, at_most=minute) == minute
    with pytest.raises(InvalidInput, match="from 1s to 1m"):
        parse_duration("61s", path="jitter", at_least=second, at_most=minute)


@given(st.integers(0, 366 * 86_400_000))
def test_formatting_is_the_inverse_of_parsing(milliseconds: int) -> None:
    duration = timedelta(milliseconds=milliseconds)
    assert parse_duration(format_duration(duration), path="x") == duration


def test_formatting_leaves_out_what_is_zero() -> None:
    assert format_duration(timedelta(hours=1, minutes=30)) == "1h30m"
    assert format_duration(timedelta(0)) == "0s"
    assert format_duration(timedelta(seconds=-90)) == "-1m30s"
