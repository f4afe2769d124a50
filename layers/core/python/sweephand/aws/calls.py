"""Calls to AWS: what their errors mean, and how many are under way at once. No ClientError leaves this package.

a condition did not hold    → Lost         an answer: the store method says False, or recognises its own write
the request is malformed    → Defect       our bug: repeating it cannot help
anything else               → Unavailable  throttled, broken, unreachable, timed out: it may have taken effect
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cached_property
from itertools import islice
from typing import Any, Final, TypeVar

from botocore.exceptions import BotoCoreError, ClientError, ParamValidationError

from sweephand.errors import Defect, Unavailable

T = TypeVar("T")
R = TypeVar("R")

Item = Mapping[str, Any]
"""An item as DynamoDB's client gives and takes it."""

ROUNDS_MAX: Final = 3
"""How often the rest of a batch is sent again at once; then the caller's own redelivery takes over."""

_LOST: Final = "ConditionalCheckFailed"
_MALFORMED: Final = frozenset(
    {
        "ValidationException",
        "ValidationError",
        "SerializationException",
        "ItemCollectionSizeLimitExceeded",
        "IdempotentParameterMismatchException",
        "InvalidParameterValue",
        "InvalidParameterCombination",
        "InvalidParameterValueException",
        "MissingParameter",
        "InvalidMessageContents",
        "BatchRequestTooLong",
        "AWS.SimpleQueueService.BatchRequestTooLong",
    }
)


class Lost(Exception):
    """The condition of a write did not hold; `item` is what was there instead."""

    def __init__(self, item: Item) -> None:
        super().__init__("The condition did not hold.")
        self.item = item


@contextmanager
def asking(what: str) -> Iterator[None]:
    """Around one call: its errors in our words."""
    try:
        yield
    except ClientError as error:
        response: Mapping[str, Any] = error.response
        if code_of(error) == f"{_LOST}Exception":
            raise Lost(response.get("Item") or {}) from error
        if code_of(error) == "TransactionCanceledException":
            _cancelled(what, response.get("CancellationReasons") or [], error)
        raise meaning(code_of(error), what) from error
    except ParamValidationError as error:
        raise Defect(f"AWS would not understand a request ({what}): {error}") from error
    except BotoCoreError as error:
        raise Unavailable(f"AWS did not answer ({what}): {error}") from error


def code_of(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


def meaning(code: str, what: str) -> Defect | Unavailable:
    """What an error code means for the caller."""
    if code in _MALFORMED:
        return Defect(f"AWS refused a request as malformed ({what}): {code}.")
    return Unavailable(f"AWS could not do it ({what}): {code}.")


def _cancelled(what: str, reasons: Sequence[Mapping[str, Any]], error: ClientError) -> None:
    """The first item of our transactions carries the one condition that may fail; the others assert what must hold."""
    codes = [str(reason.get("Code", "None")) for reason in reasons]
    if codes and codes[0] == _LOST:
        raise Lost(reasons[0].get("Item") or {}) from error
    if _LOST in codes:
        raise Defect(f"An append-only row exists already ({what}: {', '.join(codes)}).") from error
    for code in codes:
        if code != "None":
            raise meaning(code, what) from error


def is_own(item: Item, rev: int, nonce: str) -> bool:
    """Whether the write that lost lost against itself: an earlier try took effect although it seemed to fail."""
    same_rev = item.get("rv", {}).get("N") == str(rev)
    same_nonce = nonce != "" and item.get("nc", {}).get("S") == nonce
    return same_rev and same_nonce


def chunks(items: Iterable[T], size: int) -> Iterator[list[T]]:
    rest = iter(items)
    while chunk := list(islice(rest, size)):
        yield chunk


class Abreast:
    """Does the same thing to many items, a few at a time; one at a time, in order, where `width` is 1."""

    def __init__(self, width: int) -> None:
        self._width = width

    @cached_property
    def _threads(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(self._width, thread_name_prefix="aws")

    def each(self, do: Callable[[T], R], items: Sequence[T]) -> list[R]:
        """The answers in the order of the items; the first error, after which the others may have taken effect."""
        if self._width == 1 or len(items) == 1:
            return [do(item) for item in items]
        return list(self._threads.map(do, items))
