"""What calls functions by itself: schedules, queues, and the changes of tables, as EventBridge and Lambda do it."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Sequence
from datetime import datetime, timedelta
from threading import Lock
from typing import Any, Final, Protocol

from msgspec import Struct

from sweephand.aws import handed_over
from sweephand.local.cloud import events
from sweephand.local.cloud.account import changes, next_visible_at
from sweephand.local.cloud.events import Record
from sweephand.local.cloud.functions import Event, FunctionFailed, function_arn
from sweephand.local.cloud.mends import EPOCH
from sweephand.ports import Clock, Dice
from sweephand.topology import UNDELIVERED, Changes, EventFeed, Every, Function, Happens, Listed, Messages, Names

_RETRY_AFTER: Final = timedelta(seconds=1)
_RETRY_AFTER_MAX: Final = timedelta(minutes=1)
_EVENT_TRIES_MAX: Final = 5


class Source(Protocol):
    """Hands something to a function whenever there is something; as many polls as `at_once` may go on side by side."""

    name: str
    at_once: int

    def poll(self) -> bool:
        """Hand over what is there now, a batch of it; False where there is nothing."""

    def next_at(self) -> datetime | None:
        """When there will be something, if nothing else happens."""


class Surroundings(Protocol):
    """What a source needs of its deployment."""

    @property
    def names(self) -> Names: ...

    @property
    def clock(self) -> Clock: ...

    @property
    def dice(self) -> Dice: ...

    @property
    def sqs(self) -> Any: ...

    @property
    def feeds(self) -> Sequence[EventFeed]: ...

    def invoke(self, name: str, event: Event) -> Any: ...


def source_of(
    place: Surroundings, function: Function, trigger: Every | Messages | Changes | Happens | Listed
) -> Source:
    """What a trigger of a function comes from."""
    match trigger:
        case Every():
            return Schedule(place, function, trigger)
        case Messages():
            return QueueSource(place, function, trigger)
        case Changes():
            return StreamSource(place, function, trigger)
        case Happens():
            return Happenings(place, function, trigger)
        case Listed():
            return Listening(place, function)


class Schedule:
    """Calls a function at once, and then at every full period."""

    at_once = 1

    def __init__(self, place: Surroundings, function: Function, every: Every) -> None:
        self.name = function.name
        self._place = place
        self._schedule = place.names.function(function)
        self._period = every.period
        self._due_at = place.clock.now()

    def poll(self) -> bool:
        now = self._place.clock.now()
        if now < self._due_at:
            return False
        due_at, self._due_at = self._due_at, now + self._period - (now - EPOCH) % self._period
        event = events.scheduled(self._schedule, at=due_at, event_id=self._place.dice.nonce())
        try:
            self._place.invoke(self.name, event)
        except FunctionFailed:
            _put_aside(self._place, json.dumps(event))
        return True

    def next_at(self) -> datetime | None:
        return self._due_at


class QueueSource:
    """Calls a function with batches of messages. What it did not deal with comes back when its hold is over."""

    def __init__(self, place: Surroundings, function: Function, trigger: Messages) -> None:
        self.name = trigger.queue
        self.at_once = trigger.at_once
        self._place = place
        self._function = function.name
        self._queue = place.names.queue(trigger.queue)
        self._url = place.sqs.get_queue_url(QueueName=self._queue)["QueueUrl"]
        self._batch = trigger.batch

    def poll(self) -> bool:
        visible_at = self.next_at()
        if visible_at is None or visible_at > self._place.clock.now():
            return False
        answer = self._place.sqs.receive_message(
            QueueUrl=self._url, MaxNumberOfMessages=self._batch, MessageSystemAttributeNames=["All"]
        )
        received = answer.get("Messages", [])
        if received:
            self._hand_over(received)
        return True

    def next_at(self) -> datetime | None:
        return next_visible_at(self._queue)

    def _hand_over(self, received: Sequence[Any]) -> None:
        try:
            answer = self._place.invoke(self._function, events.messages(self._queue, received))
        except FunctionFailed:
            return
        kept = _failures(answer)
        if not kept <= {message["MessageId"] for message in received}:
            return  # as Lambda has it: an answer that names what was not in the batch fails all of it
        done = [
            {"Id": str(n), "ReceiptHandle": message["ReceiptHandle"]}
            for n, message in enumerate(received)
            if message["MessageId"] not in kept
        ]
        if done:
            self._place.sqs.delete_message_batch(QueueUrl=self._url, Entries=done)


class _Batch(Struct, frozen=True):
    records: Sequence[Record]
    tries: int
    not_before: datetime


class StreamSource:
    """Calls a function with what changed in a table, in order. A batch that fails holds up all that follow.

    A batch may come before it is full at any time, and here it always does: windows are not waited for.
    """

    at_once = 1

    def __init__(self, place: Surroundings, function: Function, trigger: Changes) -> None:
        self.name = function.name
        self._place = place
        self._trigger = trigger
        self._table = place.names.table(trigger.table)
        self._function_arn = function_arn(place.names.function(function))
        self._seen = 0
        self._batches: deque[_Batch] = deque()

    def poll(self) -> bool:
        self._read()
        if not self._batches or self._batches[0].not_before > self._place.clock.now():
            return False
        batch = self._batches.popleft()
        try:
            failed = _failures(self._place.invoke(self.name, {"Records": batch.records}))
        except FunctionFailed:
            failed = {_number(batch.records[0])}
        if failed:
            self._return(batch, failed)
        return True

    def next_at(self) -> datetime | None:
        self._read()
        return self._batches[0].not_before if self._batches else None

    def _read(self) -> None:
        found = changes(self._table, beyond=self._seen)
        self._seen += len(found)
        fitting = [
            record
            for record in (events.change(self._table, change) for change in found)
            if any(events.matches(pattern, record) for pattern in self._trigger.patterns)
        ]
        for first in range(0, len(fitting), self._trigger.batch):
            records = fitting[first : first + self._trigger.batch]
            self._batches.append(_Batch(records, 0, self._place.clock.now()))

    def _return(self, batch: _Batch, failed: set[str]) -> None:
        """Those before the first that failed are done; of the others each half gets a chance of its own."""
        numbers = [_number(record) for record in batch.records]
        first = min((numbers.index(number) for number in failed if number in numbers), default=0)
        left = batch.records[first:]
        now = self._place.clock.now()
        if first:
            self._batches.appendleft(_Batch(left, 0, now))
        elif len(left) > 1:
            middle = len(left) // 2
            self._batches.extendleft([_Batch(left[middle:], 0, now), _Batch(left[:middle], 0, now)])
        elif batch.tries + 1 < self._trigger.attempts:
            pause = min(_RETRY_AFTER * 2**batch.tries, _RETRY_AFTER_MAX)
            self._batches.appendleft(_Batch(left, batch.tries + 1, now + pause))
        else:
            tries = batch.tries + 1
            _put_aside(self._place, events.put_aside(self._table, self._function_arn, left, tries=tries, at=now))


class Happenings:
    """Calls a function with events that fit its pattern. One that it fails at comes again, as EventBridge has it."""

    at_once = 1

    def __init__(self, place: Surroundings, function: Function, trigger: Happens | None = None) -> None:
        self.name = function.name
        self._place = place
        self._pattern = trigger.pattern if trigger is not None else {}
        self._lock = Lock()
        self._waiting: list[tuple[datetime, int, Event]] = []

    def hear(self, event: Event, *, bus: str = "default") -> None:
        """This has happened."""
        if bus == "default" and events.matches(self._pattern, event):
            self._await(event)

    def _await(self, event: Event) -> None:
        with self._lock:
            self._waiting.append((self._place.clock.now(), 1, event))

    def poll(self) -> bool:
        now = self._place.clock.now()
        with self._lock:
            due = next((one for one in self._waiting if one[0] <= now), None)
            if due is None:
                return False
            self._waiting.remove(due)
        _, tries, event = due
        try:
            self._place.invoke(self.name, event)
        except FunctionFailed:
            if tries < _EVENT_TRIES_MAX:
                with self._lock:
                    self._waiting.append((now + _RETRY_AFTER * 2**tries, tries + 1, event))
            else:
                _put_aside(self._place, json.dumps(event))
        return True

    def next_at(self) -> datetime | None:
        with self._lock:
            return min((at for at, _, _ in self._waiting), default=None)


class Listening(Happenings):
    """Calls a function with events that fit what the deployment lists, each with its namespace."""

    def hear(self, event: Event, *, bus: str = "default") -> None:
        for feed in self._place.feeds:
            if feed.bus == bus and events.matches(feed.pattern, event):
                self._await(handed_over(feed.namespace, event))


def _failures(answer: Any) -> set[str]:
    """What a function says it did not deal with."""
    return {one["itemIdentifier"] for one in (answer or {}).get("batchItemFailures") or ()}


def _number(record: Record) -> str:
    number: str = record["dynamodb"]["SequenceNumber"]
    return number


def _put_aside(place: Surroundings, body: str) -> None:
    url = place.sqs.get_queue_url(QueueName=place.names.queue(UNDELIVERED))["QueueUrl"]
    place.sqs.send_message(QueueUrl=url, MessageBody=body)
