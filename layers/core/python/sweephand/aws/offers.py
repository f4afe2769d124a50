"""Runs that wait for external workers, over DynamoDB: a partition per namespace and queue, sorted by time.

pk               sk                                what
offer#ns#digest  2026-11-15T06:00:…#job#run_id     an offer; '#' sorts before every character of a name

They lie in the table of due entries, and not with the runs: they are hints as well, and every change in the table of
runs goes through its stream. An offer that nobody came for and nobody repeated in two weeks expires; the auditor, who
looks at every open run each hour, has it offered again and so kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial
from itertools import islice
from typing import Final

from sweephand.aws.calls import Abreast, Item, Lost
from sweephand.aws.items import digest, end, item_of, stamp, text, unstamp
from sweephand.aws.table import Table
from sweephand.domain.ids import Namespace, RunKey
from sweephand.ports import Clock, Offer
from sweephand.topology import TTL

_KEPT: Final = timedelta(days=14)
_PAGE_MAX: Final = 1_000
_FIRST: Final = "!"
_LAST: Final = "~"
"""Before and behind every instant."""


class DynamoOffers:
    """The `Offers` port."""

    def __init__(self, table: Table, abreast: Abreast, *, clock: Clock) -> None:
        self._table = table
        self._abreast = abreast
        self._clock = clock

    def offer(self, queue: str, offer: Offer) -> None:
        # From now, not from the offer's own time: an old run that is offered again must outlive this call.
        until = self._clock.now() + _KEPT
        fields = {"nc": text(offer.nonce), TTL: end(until)}
        if offer.first_until is not None:
            fields |= {"fw": text(offer.first), "fu": text(stamp(offer.first_until))}
        self._table.put(item_of(*_key(queue, offer), fields))

    def open(self, namespace: Namespace, queue: str, *, limit: int) -> list[Offer]:
        found = self._table.query(_partition(namespace, queue), low=_FIRST, high=_LAST, page=min(limit, _PAGE_MAX))
        return [_offer_of(namespace, item) for item in islice(found, limit)]

    def withdraw(self, queue: str, offers: Sequence[Offer]) -> None:
        self._abreast.each(partial(self._withdraw, queue), offers)

    def _withdraw(self, queue: str, offer: Offer) -> None:
        as_read = "nc = :nonce"
        with suppress(Lost):  # it was offered again since, or withdrawn
            self._table.delete(*_key(queue, offer), as_read, nonce={"S": offer.nonce})


def _partition(namespace: Namespace, queue: str) -> str:
    return f"offer#{namespace}#{digest(queue)}"


def _key(queue: str, offer: Offer) -> tuple[str, str]:
    within, name = offer.run.place
    namespace, _, inside = within.partition("/")
    return _partition(Namespace(namespace), queue), f"{stamp(offer.at)}#{inside}#{name}"


def _offer_of(namespace: Namespace, item: Item) -> Offer:
    at, name, run_id = item["sk"]["S"].split("#", 2)
    key = RunKey.at(f"{namespace}/{name}", run_id)
    if "fu" not in item:
        return Offer(unstamp(at), key, item["nc"]["S"])
    return Offer(unstamp(at), key, item["nc"]["S"], item["fw"]["S"], unstamp(item["fu"]["S"]))
