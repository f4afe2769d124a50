"""Logs of attempts: written by one, read by many, bounded, and never another's."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import boto3
import pytest

from sweephand.aws.logs import CloudWatchLogs
from sweephand.domain.ids import JobKey, JobName, Namespace, RunId, RunKey
from sweephand.embedded.logs import FileLogs
from sweephand.errors import InvalidInput, Unavailable
from sweephand.local.cloud.account import CONFIG
from sweephand.logs import Line, LogKey, LogPage, Logs, Stream
from tests.contract.samples import NOW
from tests.contract.world import Stores, VirtualClock
from tests.moto_world import NAMES, Fault, moto_world, throttled

A_SECOND: Final = timedelta(seconds=1)


def key(job: str = "report", *, namespace: str = "team", task: str = "main", attempt: int = 1) -> LogKey:
    run = RunKey(JobKey(Namespace(namespace), JobName(job)), RunId("20261115T060000Z"))
    return LogKey(run, task, attempt)


def line(text: str, *, stream: Stream = Stream.STDOUT, after_s: float = 0) -> Line:
    return Line(NOW + after_s * A_SECOND, stream, text)


def numbered(first: int, last: int) -> list[Line]:
    return [line(f"line {number}", after_s=number / 1000) for number in range(first, last)]


def texts(page: LogPage) -> list[str]:
    return [line.text for line in page.lines]


def everything(logs: Logs, wanted: LogKey, *, limit: int = 1000) -> list[Line]:
    """Page after page, as a follower would."""
    found: list[Line] = []
    after: str | None = None
    while True:
        page = logs.read(wanted, after=after, limit=limit)
        found += page.lines
        if not page.more:
            return found
        after = page.after


@pytest.fixture
def logs(stores: Stores) -> Logs:
    return stores.logs


@pytest.fixture
def small(engine: str, stores: Stores, tmp_path: Path) -> Logs:
    """The same store, which keeps only 16 KB of a log."""
    if engine == "moto":
        return CloudWatchLogs(lambda: boto3.client("logs", config=CONFIG), NAMES.run_log, kept_bytes=16_384)
    return FileLogs(tmp_path / "small", kept_bytes=16_384)


def test_lines_come_back_as_they_were_in_their_order(logs: Logs) -> None:
    written = [
        line("first"),
        line("", stream=Stream.STDERR),
        line(
            "\x1b[31mred\x1b[0m <script>alert(1)</script> \u2028 \N{REPLACEMENT CHARACTER} \N{PILE OF POO}", after_s=0.5
        ),
        line("said", stream=Stream.SYSTEM, after_s=1),
    ]
    logs.open(key()).append(written)
    page = logs.read(key(), after=None, limit=10)
    assert page.lines == written
    assert page.begun
    assert not page.closed
    assert not page.truncated


def test_who_follows_sees_every_line_once(logs: Logs) -> None:
    log = logs.open(key())
    seen: list[str] = []
    after: str | None = None
    for first in range(0, 30, 10):
        log.append(numbered(first, first + 10))
        for _ in range(2):
            page = logs.read(key(), after=after, limit=1000)
            seen += texts(page)
            after = page.after
    assert seen == [f"line {number}" for number in range(30)]


def test_a_page_holds_what_was_asked_for_and_the_next_goes_on(logs: Logs) -> None:
    logs.open(key()).append(numbered(0, 25))
    first = logs.read(key(), after=None, limit=10)
    assert (len(first.lines), first.more) == (10, True)
    assert [one.text for one in everything(logs, key(), limit=10)] == [f"line {number}" for number in range(25)]


def test_a_log_that_nobody_wrote_is_empty_and_can_be_followed_from_there(logs: Logs) -> None:
    page = logs.read(key(), after=None, limit=10)
    assert (page.lines, page.begun, page.closed, page.more) == ([], False, False, False)
    assert logs.tail(key(), limit=10).lines == []
    logs.open(key()).append([line("hello")])
    assert texts(logs.read(key(), after=page.after, limit=10)) == ["hello"]


def test_a_closed_log_says_so_and_how_much_never_got_there(logs: Logs) -> None:
    whole, partial = logs.open(key()), logs.open(key(attempt=2))
    for log in (whole, partial):
        log.append([line("hello")])
    whole.close(NOW + A_SECOND)
    partial.close(NOW + A_SECOND, lost=3)
    page = logs.read(key(), after=None, limit=10)
    assert (texts(page), page.closed, page.truncated) == (["hello"], True, False)
    assert logs.read(key(), after=page.after, limit=10).lines == []
    page = logs.read(key(attempt=2), after=None, limit=10)
    assert (texts(page), page.closed, page.truncated) == (["hello", "… 3 lines are missing here …"], True, True)


def test_an_attempt_that_looks_again_goes_on_with_its_log(logs: Logs) -> None:
    for number in range(3):
        log = logs.open(key())
        log.append(numbered(number, number + 1))
        log.close(NOW + number * A_SECOND / 1000)
    page = logs.read(key(), after=None, limit=10)
    assert (texts(page), page.closed) == (["line 0", "line 1", "line 2"], True)


def test_the_last_lines_are_found_and_followed(logs: Logs) -> None:
    log = logs.open(key())
    log.append(numbered(0, 500))
    page = logs.tail(key(), limit=3)
    assert texts(page) == ["line 497", "line 498", "line 499"]
    log.append(numbered(500, 502))
    assert texts(logs.read(key(), after=page.after, limit=10)) == ["line 500", "line 501"]
    log.close(NOW + A_SECOND)
    page = logs.tail(key(), limit=2)
    assert (texts(page), page.closed) == (["line 500", "line 501"], True)


def test_of_too_much_the_beginning_and_the_end_stay_and_the_gap_says_how_much_is_missing(small: Logs) -> None:
    log = small.open(key())
    for first in range(0, 2000, 50):
        log.append(numbered(first, first + 50))
    log.close(NOW + 3 * A_SECOND)
    found = everything(small, key())
    (gap,) = (number for number, one in enumerate(found) if one.missing)
    before = [one for one in found[:gap] if one.stream is Stream.STDOUT]
    after = found[gap + 1 :]
    assert [one.text for one in before] == [f"line {number}" for number in range(len(before))]
    assert [one.text for one in after] == [f"line {number}" for number in range(2000 - len(after), 2000)]
    assert found[gap].missing == 2000 - len(before) - len(after)
    assert f"{found[gap].missing:,} lines are missing here" in found[gap].text
    assert min(len(before), len(after)) > 50
    assert sum(len(one.text) for one in found) < 16_384
    assert small.tail(key(), limit=1).lines[-1].text == "line 1999"


def test_who_follows_is_told_what_went_before_they_came_to_it(small: Logs) -> None:
    log = small.open(key())
    log.append(numbered(0, 10))
    place = small.read(key(), after=None, limit=1000).after
    for first in range(10, 2000, 10):
        log.append(numbered(first, first + 10))
    log.close(NOW + 3 * A_SECOND)
    page = small.read(key(), after=place, limit=1000)
    while page.more and not page.truncated:
        page = small.read(key(), after=page.after, limit=1000)
    assert page.truncated


def test_no_log_is_anothers(logs: Logs) -> None:
    names: list[dict[str, Any]] = [
        {"job": "report"},
        {"job": "report-2"},
        {"job": "repor"},
        {"job": "report", "task": "mai"},
        {"job": "report", "task": "main.1"},
        {"job": "report", "namespace": "tea"},
        {"job": "report", "attempt": 11},
    ]
    for number, name in enumerate(names):
        logs.open(key(**name)).append([line(f"log {number}")])
    for number, name in enumerate(names):
        assert texts(logs.read(key(**name), after=None, limit=10)) == [f"log {number}"]


def test_a_place_of_nowhere_is_refused(logs: Logs) -> None:
    logs.open(key()).append([line("hello")])
    for place in ("nowhere", "../../../etc/passwd"):
        with pytest.raises(InvalidInput, match="begin anew"):
            logs.read(key(), after=place, limit=10)


# What only files promise.


def test_nothing_of_a_name_is_in_a_path_and_nobody_else_can_read_it(tmp_path: Path) -> None:
    FileLogs(tmp_path / "logs").open(key("..")).append([line("hello")])
    (file,) = (path for path in tmp_path.rglob("*") if path.is_file())
    assert set(file.relative_to(tmp_path / "logs").as_posix()) <= set("0123456789abcdef/-")
    assert file.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("offset", [1, 7, 10_000])
def test_a_place_in_the_middle_of_a_line_does_no_harm(tmp_path: Path, offset: int) -> None:
    logs = FileLogs(tmp_path)
    logs.open(key()).append(numbered(0, 3))
    page = logs.read(key(), after=f"0.{offset}.0.0", limit=10)
    assert texts(page) in ([], ["line 1", "line 2"])


def test_old_logs_go_and_then_the_oldest_of_what_is_too_much(tmp_path: Path) -> None:
    logs = FileLogs(tmp_path)
    for attempt in (1, 2, 3):
        logs.open(key(attempt=attempt)).append([line("x" * 1000)])
    for age, path in enumerate(sorted(path for path in tmp_path.rglob("*") if path.is_file())):
        os.utime(path, (NOW.timestamp() - age * 86_400,) * 2)

    def there() -> list[bool]:
        return [logs.read(key(attempt=attempt), after=None, limit=1).begun for attempt in (1, 2, 3)]

    assert logs.forget(before=NOW - timedelta(days=1.5), bytes_max=10_000) == 1
    assert there() == [True, True, False]
    assert logs.forget(before=NOW - timedelta(days=1.5), bytes_max=1_500) == 1
    assert there() == [True, False, False]
    assert logs.forget(before=NOW + A_SECOND, bytes_max=0) == 1
    assert list(tmp_path.iterdir()) == []


# What only CloudWatch asks for.


class _Calls:
    """Every batch that was put, and a fault for some of them."""

    def __init__(self) -> None:
        self.batches: list[list[dict[str, Any]]] = []
        self.fails = 0

    def faults(self, _service: str, operation: str, params: Any) -> Fault | None:
        if operation == "PutLogEvents":
            self.batches.append(params["logEvents"])
            if self.fails:
                self.fails -= 1
                return throttled(operation)
        return None


def test_batches_are_as_cloudwatch_takes_them() -> None:
    calls = _Calls()
    with moto_world(VirtualClock(), faults=calls.faults) as stores:
        log = stores.logs.open(key())
        log.append([line("short") for _ in range(25_000)])
        log.append([line("\N{SNOWMAN}" * 16_384, after_s=-number) for number in range(12)])  # a clock that goes back
        log.close(NOW)
        assert len(everything(stores.logs, key())) == 25_012
    assert len(calls.batches) > 4
    for batch in calls.batches:
        assert len(batch) <= 10_000
        assert sum(len(event["message"].encode()) + 26 for event in batch) <= 1_048_576
        assert [event["timestamp"] for event in batch] == sorted(event["timestamp"] for event in batch)


def test_what_is_held_for_days_is_written_in_batches_of_less_than_one() -> None:
    """As of an attempt that takes long and prints much: CloudWatch refuses a batch that spans 24 hours."""
    calls = _Calls()
    with moto_world(VirtualClock(), faults=calls.faults) as stores:
        log = stores.logs.open(key())
        log.append([line("x" * 16_000) for _ in range(300)])
        log.append([line("late", after_s=3_600 * hours) for hours in range(60)])
        log.close(NOW + timedelta(hours=61))
    assert sum("late" in event["message"] for batch in calls.batches for event in batch) == 60
    day_ms = 24 * 3_600_000
    assert all(batch[-1]["timestamp"] - batch[0]["timestamp"] < day_ms for batch in calls.batches)


def test_a_throttled_write_says_so_and_the_end_can_be_written_again() -> None:
    calls = _Calls()
    with moto_world(VirtualClock(), faults=calls.faults) as stores:
        log = stores.logs.open(key())
        calls.fails = 2
        with pytest.raises(Unavailable):
            log.append([line("lost")])
        with pytest.raises(Unavailable):
            log.close(NOW, lost=1)
        log.close(NOW, lost=1)
        page = stores.logs.read(key(), after=None, limit=10)
        assert (texts(page), page.closed, page.truncated) == (["… 1 line is missing here …"], True, True)
