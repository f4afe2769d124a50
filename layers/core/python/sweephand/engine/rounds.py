"""The audit of everything, in rounds that may take many steps: each goes on where the last one ended."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, Final, Self

from msgspec import Struct
from msgspec.structs import replace

from sweephand.domain.ids import JobName, Namespace
from sweephand.domain.job import Head
from sweephand.engine.audit import RECENT, Audited, audit_apart
from sweephand.engine.backfill import see_to_backfills
from sweephand.engine.issue import OWN
from sweephand.ports import World

ROUND_EVERY: Final = timedelta(minutes=15)
WHOLE_EVERY: Final = timedelta(hours=1)
"""How often a round looks a whole day back, and not only over what the rounds in between may have missed."""
_SINCE_LAST: Final = 3 * ROUND_EVERY
_PAGE: Final = 200


class _Place(Struct, frozen=True):
    """Where a round is: after this job of this namespace; or at its end."""

    begun_at: datetime
    whole_at: datetime
    namespace: str = ""
    after: str | None = None
    is_over: bool = False

    @property
    def looks_back(self) -> timedelta:
        return RECENT if self.whole_at == self.begun_at else _SINCE_LAST

    def encode(self) -> dict[str, Any]:
        moments = {"begunAt": self.begun_at.isoformat(), "wholeAt": self.whole_at.isoformat()}
        return moments | {"namespace": self.namespace, "after": self.after, "isOver": self.is_over}

    @classmethod
    def decode(cls, stored: Any) -> Self:
        begun_at, whole_at = (datetime.fromisoformat(stored[name]) for name in ("begunAt", "wholeAt"))
        return cls(begun_at, whole_at, stored["namespace"], stored["after"], stored["isOver"])


def go_on(world: World, *, until: datetime) -> Audited:
    """Audit job after job until the round is over, or this moment has come; between two rounds there is a rest.

    Backfills that nobody may have gone on with are gone on with each time.

    Two at once do the same work twice and harm nothing. One that stops half way is repeated from where it began.
    """
    see_to_backfills(world)
    stored = world.shared.get(OWN, "position", "audit")
    revision, last = (stored[0], _Place.decode(stored[1])) if stored else (0, None)
    now = world.clock.now()
    if last is not None and last.is_over and now < last.begun_at + ROUND_EVERY:
        return Audited()
    place = _first(now, last) if last is None or last.is_over else last
    audited, over = Audited(), True
    for head in _heads(world, place):
        audited += audit_apart(world, head, recent=place.looks_back)
        place = replace(place, namespace=head.key.namespace, after=head.key.name)
        if world.clock.now() >= until:
            over = False
            break
    ended = replace(place, is_over=over).encode()
    world.shared.put(OWN, "position", "audit", ended, expected=revision)  # where it loses, another goes on
    return audited


def _first(now: datetime, last: _Place | None) -> _Place:
    """The beginning of a round, which looks back over a whole day if none has for long."""
    if last is None or now >= last.whole_at + WHOLE_EVERY:
        return _Place(now, now)
    return _Place(now, last.whole_at)


def _heads(world: World, place: _Place) -> Iterator[Head]:
    """The jobs that the round has not come to, in order; a namespace that came meanwhile has its turn too."""
    for namespace in sorted(world.jobs.namespaces()):
        if namespace < place.namespace:
            continue
        after = JobName(place.after) if place.after is not None and namespace == place.namespace else None
        while heads := world.jobs.heads(Namespace(namespace), after=after, limit=_PAGE):
            yield from heads
            after = heads[-1].key.name
            if len(heads) < _PAGE:
                break
