"""How far runs of several tasks are, over DynamoDB: one item beside a run's tasks.

advance   absorb, rev 3 → 4: states, what it has looked at goes out of `ch`     where nobody else moved rev
task      note: n + 1, its name into `ch`                                      always; two at once are both counted
advance   sleep: its token                                                     where rev and n are as it saw them
task      waking: a mark beside the token, then the call, then the token goes  where nobody has marked it
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Final

from sweephand.aws.calls import Item, Lost, is_own
from sweephand.aws.items import count, end, instant, item_of, number, read_count, read_instant, text
from sweephand.aws.table import ABSENT, Table
from sweephand.domain.ids import RunKey
from sweephand.domain.progress import CHANGED_MAX, Progress
from sweephand.errors import Defect
from sweephand.ports import Clock
from sweephand.topology import TTL

_SORT_KEY: Final = "progress"
_PRESENT: Final = "attribute_exists(pk)"


class DynamoDags:
    """The `Dags` port."""

    def __init__(self, table: Table, *, clock: Clock, keep: timedelta) -> None:
        self._table = table
        self._clock = clock
        self._keep = keep

    def get(self, run: RunKey) -> Progress | None:
        item = self._table.get(str(run), _SORT_KEY)
        return None if item is None else _progress_of(item)

    def begin(self, progress: Progress) -> Progress:
        try:
            self._table.put(item_of(str(progress.run), _SORT_KEY, self._fields(progress)), ABSENT)
        except Lost as lost:
            return _progress_of(lost.item)
        return progress

    def absorb(self, before: Progress, after: Progress) -> Progress | None:
        fields = self._fields(after)
        kept = {name: value for name, value in fields.items() if value is not None}
        gone = [*(name for name in fields if name not in kept), "tk", "wu"]
        expression = f"SET {', '.join(f'{name} = :{name}' for name in kept)} REMOVE {', '.join(gone)}"
        taken = before.changed - after.changed
        if taken:
            expression += " DELETE ch :taken"
            kept["taken"] = {"SS": sorted(taken)}
        unmoved = "rv = :before"
        try:
            item = self._table.amend(
                str(before.run), _SORT_KEY, expression, unmoved, before={"N": str(before.rev)}, **kept
            )
        except Lost as lost:
            return _progress_of(lost.item) if is_own(lost.item, after.rev, after.nonce) else None
        return _progress_of(item)

    def note(self, run: RunKey, tasks: Collection[str]) -> Progress | None:
        expression = "ADD n :one"
        values: dict[str, Item] = {"one": {"N": "1"}}
        condition = _PRESENT
        if tasks:
            expression += ", ch :tasks"
            condition += " AND (attribute_not_exists(ch) OR size(ch) < :most)"
            values |= {"tasks": {"SS": sorted(tasks)}, "most": {"N": str(CHANGED_MAX)}}
        try:
            return _progress_of(self._table.amend(str(run), _SORT_KEY, expression, condition, **values))
        except Lost as lost:
            # Where enough are named, whoever advances it looks at everything: an item has no room for all names.
            return self.note(run, ()) if tasks and lost.item else None

    def sleep(self, progress: Progress, token: str) -> bool:
        unmoved = "rv = :rev"
        nothing_ended = "n = :noted" if progress.noted else "attribute_not_exists(n)"
        values: dict[str, Item] = {"token": {"S": token}, "rev": {"N": str(progress.rev)}}
        if progress.noted:
            values["noted"] = {"N": str(progress.noted)}
        try:
            self._amend(progress, "SET tk = :token REMOVE wu", f"{unmoved} AND {nothing_ended}", **values)
        except Lost:
            return False
        return True

    def waking(self, progress: Progress, *, until: datetime) -> bool:
        same_sleeper = "tk = :token"
        seen = instant(progress.waking_until)
        unmarked = "wu = :seen" if seen else "attribute_not_exists(wu)"
        values = {"token": _token(progress), "until": instant(until) or {}, **({"seen": seen} if seen else {})}
        try:
            self._amend(progress, "SET wu = :until", f"{same_sleeper} AND {unmarked}", **values)
        except Lost:
            return False
        return True

    def woken(self, progress: Progress) -> None:
        with suppress(Lost):  # it sleeps under another token, or somebody else has said so
            self._amend(progress, "REMOVE tk, wu", "tk = :token", token=_token(progress))

    def _amend(self, progress: Progress, expression: str, condition: str, **values: Item) -> None:
        self._table.amend(str(progress.run), _SORT_KEY, expression, condition, **values)

    def _fields(self, progress: Progress) -> dict[str, Item | None]:
        return {
            "b": {"B": progress.states},
            "i": {"M": {str(place): {"B": states} for place, states in progress.instances.items()}}
            if progress.instances
            else None,
            "la": instant(progress.looked_at),
            "g": count(progress.generation),
            "wv": count(progress.waves),
            "rv": number(progress.rev),
            "nc": text(progress.nonce or None),
            TTL: end(self._clock.now() + self._keep),
        }


def _token(progress: Progress) -> Item:
    if progress.token is None:
        raise Defect(f"Nobody sleeps over run {progress.run}.")
    return {"S": progress.token}


def _progress_of(item: Item) -> Progress:
    looked_at = read_instant(item, "la")
    if looked_at is None:
        raise Defect(f"The progress of run {item['pk']['S']} was never looked at.")
    stored: Mapping[str, Item] = item["i"]["M"] if "i" in item else {}
    return Progress(
        RunKey.of(item["pk"]["S"]),
        bytes(item["b"]["B"]),
        looked_at,
        {int(place): bytes(states["B"]) for place, states in stored.items()},
        generation=read_count(item, "g"),
        waves=read_count(item, "wv"),
        rev=read_count(item, "rv"),
        nonce=item["nc"]["S"] if "nc" in item else "",
        changed=frozenset(item["ch"]["SS"]) if "ch" in item else frozenset(),
        noted=read_count(item, "n"),
        token=item["tk"]["S"] if "tk" in item else None,
        waking_until=read_instant(item, "wu"),
    )
