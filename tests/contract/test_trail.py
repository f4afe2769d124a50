"""The contract of `Trail`: an audit log that is appended to, and read newest first."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import pytest
from hypothesis import given, settings
from msgspec.structs import replace

from sweephand.domain.ids import Namespace
from sweephand.domain.trail import Deed
from sweephand.errors import Defect
from tests.contract.samples import DEFAULT, HOUR, NOW, SECOND, STRANGE, TICK, deed_at, deeds, fresh_key
from tests.contract.world import Stores

DAY: Final = timedelta(days=1)


def append(stores: Stores, written: list[Deed]) -> None:
    for deed in written:
        stores.trail.append(deed)


def paged(stores: Stores, page: int, namespace: Namespace = DEFAULT) -> list[Deed]:
    """The whole log, page by page."""
    found: list[Deed] = []
    while next_page := stores.trail.deeds(namespace, before=found[-1] if found else None, limit=page):
        assert len(next_page) <= page
        assert next_page[0] not in found, "the pages do not get on"
        found += next_page
    return found


def test_an_empty_log_has_no_deeds(stores: Stores) -> None:
    assert stores.trail.deeds(DEFAULT, limit=10) == []
    assert stores.trail.deeds(DEFAULT, before=deed_at(), limit=10) == []


def test_any_deed_comes_back(stores: Stores, examples: settings) -> None:
    @examples
    @given(deed=deeds)
    def check(deed: Deed) -> None:
        mine = replace(deed, namespace=Namespace(fresh_key().name))
        stores.trail.append(mine)
        assert stores.trail.deeds(mine.namespace, limit=10) == [mine]

    check()


def test_the_same_deed_again_changes_nothing(stores: Stores) -> None:
    first, second = deed_at(before={"slots": 1}), deed_at(NOW + SECOND)
    append(stores, [first, second, first, deed_at(before={"slots": 1})])
    assert stores.trail.deeds(DEFAULT, limit=10) == [second, first]


def test_a_deed_is_never_replaced_by_another(stores: Stores) -> None:
    stores.trail.append(deed_at())
    with pytest.raises(Defect, match="has another deed"):
        stores.trail.append(deed_at(actor="mallory"))
    assert stores.trail.deeds(DEFAULT, limit=10) == [deed_at()]


def test_deeds_are_listed_newest_first_by_time_and_id(stores: Stores) -> None:
    oldest_first = [
        deed_at(NOW - TICK, "z"),
        *(deed_at(NOW, deed_id) for deed_id in sorted(("b", "a", "a#b", "a/b", "aa", "B", "ä"))),
        deed_at(NOW + TICK, "a"),
    ]
    append(stores, oldest_first[::-2] + oldest_first[-2::-2])
    assert stores.trail.deeds(DEFAULT, limit=100) == oldest_first[::-1]
    for page in (1, 2, 4):
        assert paged(stores, page) == oldest_first[::-1]


def test_a_page_begins_before_a_deed_even_if_the_log_lacks_it(stores: Stores) -> None:
    one, two = deed_at(NOW, "b"), deed_at(NOW, "d")
    append(stores, [one, two])
    assert stores.trail.deeds(DEFAULT, before=deed_at(NOW, "c"), limit=9) == [one]
    assert stores.trail.deeds(DEFAULT, before=deed_at(NOW, "a"), limit=9) == []
    assert stores.trail.deeds(DEFAULT, before=deed_at(NOW + TICK, ""), limit=9) == [two, one]
    assert stores.trail.deeds(DEFAULT, before=deed_at(NOW, ""), limit=9) == []


def test_a_log_of_many_months_is_one_log(stores: Stores) -> None:
    oldest_first = [deed_at(NOW + n * 9 * DAY, f"d{n}") for n in range(-40, 2)]
    append(stores, oldest_first)
    assert stores.trail.deeds(DEFAULT, limit=1_000) == oldest_first[::-1]
    assert paged(stores, 5) == oldest_first[::-1]
    assert stores.trail.deeds(DEFAULT, before=oldest_first[7], limit=1_000) == oldest_first[6::-1]


def test_the_last_and_the_first_instant_of_a_month_are_neighbours(stores: Stores) -> None:
    december = NOW.replace(month=12, day=1, hour=0)
    last, first = deed_at(december - TICK), deed_at(december)
    append(stores, [first, last])
    assert stores.trail.deeds(DEFAULT, limit=9) == [first, last]
    assert stores.trail.deeds(DEFAULT, before=first, limit=9) == [last]


def test_each_namespace_has_a_log_of_its_own(stores: Stores) -> None:
    names = ("default", "default-2", "other", "_sweephand")
    for n, name in enumerate(names):
        append(stores, [deed_at(NOW, "same", name), deed_at(NOW + n * HOUR, f"{n}", name)])
    for n, name in enumerate(names):
        assert [deed.id for deed in stores.trail.deeds(Namespace(name), limit=9)] == (
            [f"{n}", "same"] if n else ["same", "0"]
        )


def test_an_id_may_be_anything(stores: Stores) -> None:
    written = [deed_at(NOW, deed_id) for deed_id in STRANGE]
    append(stores, written)
    in_order = sorted(written, key=lambda deed: deed.id, reverse=True)
    assert stores.trail.deeds(DEFAULT, limit=100) == in_order
    assert paged(stores, 3) == in_order


@pytest.mark.parametrize("letter", ["x", "ä", "名", "🕰"])
def test_a_long_id_is_an_id(stores: Stores, letter: str) -> None:
    lengths = (1, 225, 226, 300, 301, 450, 451, 900, 901, 1_000, 5_000)
    written = [deed_at(NOW, letter * n) for n in lengths] + [deed_at(NOW, "a"), deed_at(NOW, "\U0010ffff")]
    append(stores, written + written)
    found = stores.trail.deeds(DEFAULT, limit=100)
    assert sorted(found, key=lambda deed: deed.id) == sorted(written, key=lambda deed: deed.id)
    assert (found[0].id, found[-1].id) == ("\U0010ffff", "a")
    assert paged(stores, 2) == found
