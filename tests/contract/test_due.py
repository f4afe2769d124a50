"""The contract of `Due`: hints in their order, page by page."""

from __future__ import annotations

from datetime import datetime

from sweephand.ports import Due, DueEntry, DueKind
from tests.contract.samples import HOUR, MINUTE, NOW, SECOND, TICK
from tests.contract.world import Stores


def entry(at: datetime = NOW, key: str = "default/report", *, kind: DueKind = DueKind.JOB, shard: int = 0) -> DueEntry:
    return DueEntry(at, kind, key, shard)


def walked(due: Due, *, after: datetime | None, upto: datetime, limit: int) -> list[DueEntry]:
    """Every page, as a sweep reads them."""
    found: list[DueEntry] = []
    while page := due.read(0, after=after, upto=upto, limit=limit, beyond=found[-1] if found else None):
        assert len(page) <= limit
        found += page
    return found


def test_an_empty_shard_has_nothing_due(stores: Stores) -> None:
    assert stores.due.read(0, after=None, upto=NOW, limit=10) == []
    stores.due.arm([])
    stores.due.done([])


def test_an_entry_is_found_in_its_shard_from_its_instant_on(stores: Stores) -> None:
    one = entry(NOW + TICK, "default/naïve", shard=7)
    stores.due.arm([one])
    assert stores.due.read(7, after=None, upto=NOW, limit=10) == []
    assert stores.due.read(7, after=None, upto=NOW + TICK, limit=10) == [one]
    assert stores.due.read(6, after=None, upto=NOW + HOUR, limit=10) == []


def test_a_window_excludes_its_beginning_and_includes_its_end(stores: Stores) -> None:
    entries = [entry(NOW + n * MINUTE) for n in range(5)]
    stores.due.arm(entries)
    assert stores.due.read(0, after=NOW, upto=NOW + 2 * MINUTE, limit=10) == entries[1:3]
    assert stores.due.read(0, after=NOW - TICK, upto=NOW + 2 * MINUTE - TICK, limit=10) == entries[:2]
    assert stores.due.read(0, after=NOW, upto=NOW, limit=10) == []
    assert stores.due.read(0, after=NOW + HOUR, upto=NOW, limit=10) == []


def test_entries_come_in_their_order(stores: Stores) -> None:
    entries = [
        entry(NOW, "default/a-b"),
        entry(NOW, "default/a.b"),
        entry(NOW, "default/b"),
        entry(NOW, "default/a/20261115T060000Z", kind=DueKind.RUN),
        entry(NOW + SECOND, "default/a"),
        entry(NOW + 2 * HOUR, "default/a"),
    ]
    stores.due.arm(entries[::-1])
    assert stores.due.read(0, after=None, upto=NOW + 3 * HOUR, limit=10) == entries == sorted(entries)


def test_pages_meet_without_gap_or_overlap_even_within_one_instant(stores: Stores) -> None:
    instants = (NOW - HOUR, NOW, NOW + SECOND, NOW + MINUTE)
    entries = [entry(at, f"default/job-{n}") for at in instants for n in range(5)]
    entries += [entry(at, f"default/job-{n}/r", kind=DueKind.RUN) for at in instants for n in range(2)]
    stores.due.arm(entries)
    for limit in (1, 3, 7, 100):
        assert walked(stores.due, after=None, upto=NOW + HOUR, limit=limit) == sorted(entries)
    within = sorted(one for one in entries if NOW - HOUR < one.at <= NOW + SECOND)
    assert walked(stores.due, after=NOW - HOUR, upto=NOW + SECOND, limit=4) == within


def test_a_page_begins_beyond_an_entry_that_is_there_no_more(stores: Stores) -> None:
    entries = [entry(NOW, f"default/job-{n}") for n in range(4)]
    stores.due.arm(entries)
    first = stores.due.read(0, after=None, upto=NOW, limit=2)
    stores.due.done(first)
    assert stores.due.read(0, after=None, upto=NOW, limit=2, beyond=first[-1]) == entries[2:]


def test_an_entry_armed_twice_is_one_entry(stores: Stores) -> None:
    stores.due.arm([entry(), entry()])
    stores.due.arm([entry()])
    assert stores.due.read(0, after=None, upto=NOW, limit=10) == [entry()]


def test_what_was_dealt_with_does_not_take_others_along(stores: Stores) -> None:
    kept = [
        entry(NOW + TICK),
        entry(key="default/report-2"),
        entry(kind=DueKind.RUN),
        entry(shard=1),
    ]
    stores.due.arm([entry(), *kept])
    stores.due.done([entry(), entry(NOW + HOUR, "default/never-armed")])
    left = stores.due.read(0, after=None, upto=NOW + HOUR, limit=10) + stores.due.read(
        1, after=None, upto=NOW + HOUR, limit=10
    )
    assert set(kept) <= set(left)
    assert set(left) <= {entry(), *kept}  # a store that expires entries by itself may still show it


def test_many_entries_are_armed_at_once(stores: Stores) -> None:
    entries = sorted(entry(NOW, f"default/job-{n:03}") for n in range(60))
    stores.due.arm(entries)
    assert stores.due.read(0, after=None, upto=NOW, limit=100) == entries
