"""What was in force when: the rows that changes leave behind, read as stretches of time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

from msgspec import Struct
from msgspec.structs import replace

from sweephand.domain.job import A_MOMENT, Catchup, Change, Job, JobEvent
from sweephand.domain.limits import SIDES_BLUR
from sweephand.domain.schedule import Schedule


class Segment(Struct, frozen=True):
    """A stretch since <= t < until with one version in force; `until` None means that it still is."""

    since: datetime
    until: datetime | None
    version: int
    schedule: Schedule | None
    catchup: Catchup
    paused: bool = False

    def fires(self, after: datetime, upto: datetime) -> Iterator[datetime]:
        """The fires of this stretch with after < F <= upto."""
        bounds = self.clip(after, upto)
        if self.schedule is not None and bounds is not None:
            yield from self.schedule.fires(*bounds)

    def clip(self, after: datetime, upto: datetime) -> tuple[datetime, datetime] | None:
        """The part of (after, upto] that lies in this stretch; None where there is none."""
        low = max(after, self.since - A_MOMENT)
        high = upto if self.until is None else min(upto, self.until - A_MOMENT)
        return (low, high) if low < high else None


def segments(changes: Iterable[Change], jobs: Mapping[int, Job | None]) -> list[Segment]:
    """The stretches that a timeline, oldest change first, describes; deleted stretches are left out."""
    found: list[Segment] = []
    paused = False
    for change in changes:
        if found and found[-1].until is None:
            found[-1] = replace(found[-1], until=change.at)
        if change.event is not JobEvent.PUT:
            paused = change.event is JobEvent.PAUSED
        job = jobs.get(change.version)
        if job is not None:
            found.append(Segment(change.at, None, change.version, job.schedule, job.catchup, paused))
    return found


def in_force(stretches: Sequence[Segment], at: datetime) -> Segment | None:
    """The stretch that an instant lies in."""
    for segment in reversed(stretches):
        if segment.since <= at and (segment.until is None or at < segment.until):
            return segment
    return None


def near_a_change(changes: Iterable[Change], at: datetime) -> bool:
    """Whether a change is so close that clocks that are off may put it on either side of the instant."""
    return any(abs(change.at - at) <= SIDES_BLUR for change in changes)
