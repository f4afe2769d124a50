"""Messages over SQS: a standard queue per lane and its dead-letter queue; the namespace is the fairness group."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from math import ceil
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from sweephand.aws.calls import ROUNDS_MAX, asking, chunks, code_of, meaning
from sweephand.domain.limits import MESSAGE_DELAY_MAX
from sweephand.errors import Defect, Unavailable
from sweephand.messages import encode
from sweephand.ports import DeadLetter, Delivery, Lane, Letter
from sweephand.topology import QUEUES, Names

if TYPE_CHECKING:
    from types_boto3_sqs.client import SQSClient

BATCH_MAX: Final = 10
BATCH_BYTES_MAX: Final = 1_048_576
HOLD_MAX: Final = timedelta(hours=11, minutes=45)
"""SQS hides a message for at most 12 hours from its receipt, and a function may take 15 minutes to ask for it."""

_PEEK: Final = timedelta(seconds=30)
_GONE: Final = frozenset({"ReceiptHandleIsInvalid", "MessageNotInflight", "AWS.SimpleQueueService.MessageNotInflight"})
_DEAD: Final = {Lane(queue.name): queue.dead for queue in QUEUES}


class Addresses:
    """The URLs of the queues, asked for once."""

    def __init__(self, client: SQSClient, names: Names) -> None:
        self._client = client
        self._names = names
        self._known: dict[str, str] = {}

    def of(self, name: str) -> str:
        if name not in self._known:
            with asking(f"find queue {name}"):
                answer = self._client.get_queue_url(QueueName=self._names.queue(name))
            self._known[name] = answer["QueueUrl"]
        return self._known[name]


class SqsQueue:
    """The `Queue` port."""

    def __init__(self, client: SQSClient, addresses: Addresses) -> None:
        self._client = client
        self._addresses = addresses

    def send(self, letters: Sequence[Letter]) -> None:
        by_lane: defaultdict[Lane, list[Any]] = defaultdict(list)
        for letter in letters:
            by_lane[letter.lane].append(_entry(letter))
        for lane, entries in by_lane.items():
            for batch in _batches(entries):
                self._send(lane, batch)

    def _send(self, lane: Lane, batch: Sequence[Any]) -> None:
        url = self._addresses.of(lane)
        _insist(
            batch,
            lambda left: self._client.send_message_batch(QueueUrl=url, Entries=left),
            f"send to {lane}",
        )


class SqsInbox:
    """The `Inbox` port."""

    def __init__(self, client: SQSClient, addresses: Addresses) -> None:
        self._client = client
        self._addresses = addresses

    def receive(self, lane: Lane, *, most: int, hold: timedelta) -> list[Delivery]:
        return [
            Delivery(
                message["Body"],
                message["ReceiptHandle"],
                lane,
                int(message["Attributes"]["ApproximateReceiveCount"]),
                hold,
            )
            for message in self._receive(lane, most=most, hold=hold)
        ]

    def keep(self, delivery: Delivery, hold: timedelta) -> None:
        with asking(f"keep a message of {delivery.lane}"):
            try:
                self._client.change_message_visibility(
                    QueueUrl=self._addresses.of(delivery.lane),
                    ReceiptHandle=delivery.receipt,
                    VisibilityTimeout=_seconds(hold),
                )
            except ClientError as error:
                if code_of(error) not in _GONE:
                    raise
                # Safe: it was deleted, or its hold is over and somebody else has it or will.

    def delete(self, deliveries: Sequence[Delivery]) -> None:
        by_lane: defaultdict[str, list[str]] = defaultdict(list)
        for delivery in deliveries:
            by_lane[delivery.lane].append(delivery.receipt)
        for queue, receipts in by_lane.items():
            self._delete(queue, receipts)

    def dead(self, *, most: int) -> list[DeadLetter]:
        """Looked at, not taken: shown again at once to whoever asks next."""
        found: list[DeadLetter] = []
        for lane, queue in _DEAD.items():
            messages = self._receive(queue, most=most - len(found), hold=_PEEK)
            found += [_dead_letter(message, lane) for message in messages]
            for batch in chunks([message["ReceiptHandle"] for message in messages], BATCH_MAX):
                self._show_again(queue, batch)
        return found

    def bury(self, letters: Sequence[DeadLetter]) -> None:
        by_queue: defaultdict[str, list[str]] = defaultdict(list)
        for letter in letters:
            by_queue[_DEAD[letter.lane]].append(letter.id)
        for queue, receipts in by_queue.items():
            self._delete(queue, receipts)

    def _receive(self, queue: str, *, most: int, hold: timedelta) -> list[Any]:
        found: list[Any] = []
        while len(found) < most:
            wanted = min(BATCH_MAX, most - len(found))
            with asking(f"receive from {queue}"):
                answer = self._client.receive_message(
                    QueueUrl=self._addresses.of(queue),
                    MaxNumberOfMessages=wanted,
                    VisibilityTimeout=_seconds(hold),
                    MessageSystemAttributeNames=["ApproximateReceiveCount", "SentTimestamp"],
                )
            messages = answer.get("Messages", [])
            found += messages
            if len(messages) < wanted:
                break
        return found

    def _delete(self, queue: str, receipts: Iterable[str]) -> None:
        url = self._addresses.of(queue)
        for batch in chunks(dict.fromkeys(receipts), BATCH_MAX):
            _insist(
                [{"ReceiptHandle": receipt} for receipt in batch],
                lambda left: self._client.delete_message_batch(QueueUrl=url, Entries=left),
                f"delete from {queue}",
            )

    def _show_again(self, queue: str, receipts: Sequence[str]) -> None:
        entries: Any = [
            {"Id": str(n), "ReceiptHandle": receipt, "VisibilityTimeout": 0} for n, receipt in enumerate(receipts)
        ]
        with asking(f"show {queue} again"):  # failed entries show themselves when the peek is over
            self._client.change_message_visibility_batch(QueueUrl=self._addresses.of(queue), Entries=entries)


def _insist(entries: Sequence[Any], send: Callable[[Any], Any], what: str) -> None:
    """A batch is accepted entry by entry: the failed ones are sent again, and only they; what is gone is fine."""
    left = [{"Id": str(n), **entry} for n, entry in enumerate(entries)]
    for _ in range(ROUNDS_MAX):
        with asking(what):
            answer = send(left)
        failed = {one["Id"]: one["Code"] for one in answer.get("Failed", []) if one["Code"] not in _GONE}
        left = [entry for entry in left if entry["Id"] in failed]
        if not left:
            return
        for code in failed.values():
            if isinstance(error := meaning(code, what), Defect):
                raise error
    raise Unavailable(f"SQS did not accept {len(left)} entries of a batch ({what}).")


def _entry(letter: Letter) -> Any:
    if letter.delay > MESSAGE_DELAY_MAX:
        raise Defect(f"A message cannot be delayed by {letter.delay}: a queue's longest is {MESSAGE_DELAY_MAX}.")
    # Rounded up: one that comes a fraction of a second early would be returned for a whole second, and paid for twice.
    return {
        "MessageBody": encode(letter.message),
        "DelaySeconds": max(0, ceil(letter.delay.total_seconds())),
        "MessageGroupId": letter.group,
    }


def _batches(entries: Iterable[Any]) -> Iterator[list[Any]]:
    """As many entries together as SQS takes, by number and by size."""
    batch: list[Any] = []
    size = 0
    for entry in entries:
        length = len(entry["MessageBody"].encode())
        if batch and (len(batch) == BATCH_MAX or size + length > BATCH_BYTES_MAX):
            yield batch
            batch, size = [], 0
        batch.append(entry)
        size += length
    if batch:
        yield batch


def _seconds(hold: timedelta) -> int:
    return ceil(max(timedelta(0), min(hold, HOLD_MAX)) / timedelta(seconds=1))


def _dead_letter(message: Any, lane: Lane) -> DeadLetter:
    # SQS says when a message was sent, not when it died.
    sent_at = datetime.fromtimestamp(int(message["Attributes"]["SentTimestamp"]) / 1000, UTC)
    return DeadLetter(message["ReceiptHandle"], message["Body"], lane, sent_at)
