"""Answers kept for callers who repeat themselves, over DynamoDB: in the table of runs, which forgets by itself."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from sweephand.aws.calls import Item, Lost
from sweephand.aws.items import digest, end, instant, item_of, read_instant, text
from sweephand.aws.table import ABSENT, Table
from sweephand.domain.ids import Namespace
from sweephand.errors import Defect
from sweephand.ports import Reply
from sweephand.topology import TTL

_REPLY: Final = "reply"


class DynamoReplies:
    """The `Replies` port. Who may write when:

    caller A   reserve ──► absent: in place                     (holder A, held until t)
    caller B   reserve, before t ──► held                       A's reply, unanswered
    caller A   reserve again, having seen a time-out            A's own reply
    caller B   reserve, after t, the same fingerprint ──► taken over, in place: B's
    caller A   settle ──► another's holder                      False
    caller B   settle ──► answered                              (holder B, the answer)
    caller B   release, having seen settle time out             nothing: an answer stays
    anyone     reserve ──► answered                             B's answer, until it is forgotten
    """

    def __init__(self, table: Table) -> None:
        self._table = table

    def reserve(self, namespace: Namespace, key: str, reply: Reply, *, now: datetime, until: datetime) -> Reply:
        forgotten = "u < :now"
        unanswered = "attribute_not_exists(an)"
        out_of_time = "hu < :now"
        same_question = "fp = :asked"
        abandoned = f"({unanswered} AND {out_of_time} AND {same_question})"
        try:
            self._table.put(
                _item_of(namespace, key, reply, until),
                f"{ABSENT} OR {forgotten} OR {abandoned}",
                now=instant(now) or {},
                asked={"S": reply.fingerprint},
            )
        except Lost as lost:
            return _reply_of(lost.item)
        return reply

    def settle(self, namespace: Namespace, key: str, reply: Reply, *, until: datetime) -> bool:
        mine = "ho = :holder"
        try:
            self._table.put(_item_of(namespace, key, reply, until), f"{ABSENT} OR {mine}", holder={"S": reply.holder})
        except Lost:
            return False
        return True

    def release(self, namespace: Namespace, key: str, reply: Reply) -> None:
        mine = "ho = :holder"
        unanswered = "attribute_not_exists(an)"
        try:
            self._table.delete(
                _partition(namespace, key), _REPLY, f"{mine} AND {unanswered}", holder={"S": reply.holder}
            )
        except Lost:
            pass  # safe: it is another's by now, or gone, or answered by a call that seemed to fail


def _partition(namespace: Namespace, key: str) -> str:
    # The key is a stranger's text of any length; a name cannot contain '#', so no job's partition is met.
    return f"reply#{namespace}#{digest(key)}"


def _item_of(namespace: Namespace, key: str, reply: Reply, until: datetime) -> Item:
    fields = {
        "fp": text(reply.fingerprint),
        "ho": text(reply.holder),
        "hu": instant(reply.held_until),
        "an": text(reply.answer),
        "u": instant(until),
        TTL: end(until),
    }
    return item_of(_partition(namespace, key), _REPLY, fields)


def _reply_of(item: Item) -> Reply:
    held_until = read_instant(item, "hu")
    if held_until is None:
        raise Defect("A reply says nothing of its holder's time.")
    return Reply(item["fp"]["S"], item["ho"]["S"], held_until, item["an"]["S"] if "an" in item else None)
