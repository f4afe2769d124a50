"""Logs in CloudWatch: one group of a deployment, one stream for each attempt.

An event is a line as JSON, so that an empty line is one too and Logs Insights can ask for streams. What comes first is
written as it comes. Beyond half of what is kept, lines are only held, the latest of them, and written at the end.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any, Final

from botocore.exceptions import ClientError
from msgspec.structs import replace

from sweephand.aws.calls import asking, code_of
from sweephand.errors import InvalidInput
from sweephand.logs import KEPT_BYTES, PAGE_BYTES_MAX, Line, Log, LogKey, LogPage, Stream, left_out

EVENTS_MAX: Final = 10_000
BATCH_BYTES_MAX: Final = 1_048_576
_SPAN_MAX: Final = timedelta(hours=24)
"""What is further apart cannot be written together."""
_EVENT_BYTES: Final = 26
"""What CloudWatch adds to each event when it counts a batch."""
_TURNS_MAX: Final = 4
"""How often a read goes on where a page came empty and says that there is more."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)
_HELD_AT_THE_END: Final = "… what comes from here on is shown when the attempt has ended: the last of it …"

Event = dict[str, Any]


class CloudWatchLogs:
    """Every log in one group; the client is made when it is first needed, which most cold starts never see."""

    lag: Final = timedelta(seconds=10)

    def __init__(self, client: Callable[[], Any], group: str, *, kept_bytes: int = KEPT_BYTES) -> None:
        self._make_client = client
        self._group = group
        self._kept_bytes = kept_bytes

    @cached_property
    def _client(self) -> Any:
        return self._make_client()

    def open(self, key: LogKey) -> Log:
        return _StreamLog(self._client, {"logGroupName": self._group, "logStreamName": _stream(key)}, self._kept_bytes)

    def read(self, key: LogKey, *, after: str | None, limit: int) -> LogPage:
        """The place in a log is CloudWatch's own token."""
        page = LogPage([], after or "")
        lines: list[Line] = []
        for _ in range(_TURNS_MAX):
            token = {"nextToken": page.after} if page.after else {}
            answer = self._get(key, token, limit - len(lines), from_head=True)
            if answer is None:
                break
            following = answer["nextForwardToken"]
            page = _page(answer["events"], following, more=following != page.after, closed=page.closed)
            lines += page.lines
            if not page.more or len(lines) >= limit or sum(len(line.text) for line in lines) > PAGE_BYTES_MAX:
                break
        return replace(page, lines=lines)

    def tail(self, key: LogKey, *, limit: int) -> LogPage:
        # The mark of the end is no line.
        answer = self._get(key, {}, limit + 1, from_head=False)
        if answer is None:
            return LogPage([], "")
        page = _page(answer["events"], answer["nextForwardToken"])
        del page.lines[: max(0, len(page.lines) - limit)]
        return page

    def _get(self, key: LogKey, more: Event, limit: int, *, from_head: bool) -> Event | None:
        """A page of events; None where there is no such stream."""
        where = {"logGroupName": self._group, "logStreamName": _stream(key)}
        with asking(f"read the log of {key.run}"):
            try:
                answer: Event = self._client.get_log_events(**where, **more, limit=limit, startFromHead=from_head)
            except ClientError as error:
                if code_of(error) == "ResourceNotFoundException":
                    return None
                if code_of(error) == "InvalidParameterException" and more:
                    raise InvalidInput("There is no such place in this log: begin anew.", "after") from error
                raise
        return answer


def _stream(key: LogKey) -> str:
    return f"{key.digest}/{key.attempt}"


class _StreamLog:
    """Appends to one stream, which is made with the first line."""

    def __init__(self, client: Any, where: Event, kept_bytes: int) -> None:
        self._client = client
        self._where = where
        self._room = kept_bytes // 2
        self._held = _Held(kept_bytes // 2)
        self._is_there = False
        self._last_ms = 0
        self._rest: list[Event] = []
        """What is to be written at the end."""

    def append(self, lines: Sequence[Line]) -> None:
        events = [self._event(line) for line in lines]
        if not self._held.has_begun:
            fitting = self._fitting(events)
            self._put(events[:fitting])
            events = events[fitting:]
            if events:
                self._put([_event(Line(_at(events[0]["timestamp"]), Stream.SYSTEM, _HELD_AT_THE_END))])
        self._held.add(events)

    def close(self, at: datetime, *, lost: int = 0) -> None:
        if not self._rest:
            held, gone = self._held.events, self._held.missing
            marks = [_event(left_out(_at(held[0]["timestamp"]), *gone))] if gone[0] else []
            end = self._event(Line(at, Stream.SYSTEM, ""))
            untold = [_event(left_out(_at(end["timestamp"]), lost))] if lost else []
            self._rest = [*marks, *held, *untold, {**end, "message": json.dumps({"end": True})}]
        for batch in list(_batches(self._rest)):
            self._put(batch)
            del self._rest[: len(batch)]

    def _event(self, line: Line) -> Event:
        """Times never go back in a stream, even where a clock does: a batch must be in order."""
        event = _event(line)
        event["timestamp"] = self._last_ms = max(event["timestamp"], self._last_ms)
        return event

    def _fitting(self, events: Sequence[Event]) -> int:
        """How many still belong to the beginning."""
        for number, event in enumerate(events):
            self._room -= _weight(event)
            if self._room < 0:
                return number
        return len(events)

    def _put(self, events: Sequence[Event]) -> None:
        for batch in _batches(events):
            with asking("write a log"):
                self._put_batch(batch)

    def _put_batch(self, batch: Sequence[Event]) -> None:
        if not self._is_there:
            try:
                self._client.create_log_stream(**self._where)
            except ClientError as error:
                if code_of(error) != "ResourceAlreadyExistsException":  # safe: an earlier look of the attempt made it
                    raise
            self._is_there = True
        self._client.put_log_events(**self._where, logEvents=list(batch))


class _Held:
    """The latest events, of so many bytes; the others are counted."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._bytes = 0
        self.events: deque[Event] = deque()
        self.missing = (0, 0)
        """Events that had to go, and their bytes."""

    @property
    def has_begun(self) -> bool:
        return bool(self.events)

    def add(self, events: Sequence[Event]) -> None:
        for event in events:
            self.events.append(event)
            self._bytes += _weight(event)
        count, size = self.missing
        while self._bytes > self._bytes_max and len(self.events) > 1:
            gone = _weight(self.events.popleft())
            self._bytes -= gone
            count, size = count + 1, size + gone
        self.missing = count, size


def _batches(events: Sequence[Event]) -> Iterator[Sequence[Event]]:
    """As many at a time as CloudWatch takes."""
    batch: list[Event] = []
    size = 0
    for event in events:
        weight = _weight(event)
        is_apart = bool(batch) and event["timestamp"] - batch[0]["timestamp"] >= _SPAN_MAX // _MILLISECOND
        if batch and (is_apart or len(batch) == EVENTS_MAX or size + weight > BATCH_BYTES_MAX):
            yield batch
            batch, size = [], 0
        batch.append(event)
        size += weight
    if batch:
        yield batch


def _weight(event: Event) -> int:
    return len(event["message"]) + _EVENT_BYTES  # ASCII: JSON escapes the rest


def _event(line: Line) -> Event:
    missing = {"missing": line.missing} if line.missing else {}
    message = json.dumps({"stream": line.stream, "text": line.text, **missing})
    return {"timestamp": (line.at - _EPOCH) // _MILLISECOND, "message": message}


def _page(events: Sequence[Event], after: str, *, more: bool = False, closed: bool = False) -> LogPage:
    """A page of these events; where there are none, the log is as closed as it was before them."""
    lines: list[Line] = []
    for event in events:
        told = _told(event["message"])
        closed = "end" in told
        if not closed:
            lines.append(Line(_at(event["timestamp"]), told["stream"], told["text"], told["missing"]))
    return LogPage(lines, after, more, True, closed)


def _told(message: str) -> Event:
    """What a line says; what is no line of ours is shown as it is, since users' code could write here too."""
    try:
        told = json.loads(message)
        if "end" in told:
            return {"end": True}
        return {"stream": Stream(told["stream"]), "text": str(told["text"]), "missing": int(told.get("missing", 0))}
    except (ValueError, TypeError, KeyError):
        return {"stream": Stream.SYSTEM, "text": message, "missing": 0}


def _at(timestamp: int) -> datetime:
    return _EPOCH + timestamp * _MILLISECOND
