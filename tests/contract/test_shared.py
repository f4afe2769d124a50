"""The contract of `Shared`: documents under revisions."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweephand.documents import SharedDocument
from sweephand.domain.ids import Namespace
from sweephand.errors import Defect
from tests.contract.samples import DEFAULT, NOW, SECOND, STRANGE, deed_at, fresh_key, jsons, texts
from tests.contract.world import Stores


def test_a_document_that_was_never_put_is_absent(stores: Stores) -> None:
    assert stores.shared.get(DEFAULT, "pool", "db") is None
    assert not stores.shared.put(DEFAULT, "pool", "db", {"slots": 1}, expected=1)
    assert stores.shared.get(DEFAULT, "pool", "db") is None


def test_every_put_raises_the_revision_by_one(stores: Stores) -> None:
    for expected in range(3):
        assert stores.shared.put(DEFAULT, "pool", "db", {"slots": expected}, expected=expected)
        assert stores.shared.get(DEFAULT, "pool", "db") == (expected + 1, {"slots": expected})


def test_a_put_on_another_revision_changes_nothing(stores: Stores) -> None:
    assert stores.shared.put(DEFAULT, "pool", "db", {"slots": 1}, expected=0)
    assert stores.shared.put(DEFAULT, "pool", "db", {"slots": 2}, expected=1)
    for expected in (0, 1, 3):
        assert not stores.shared.put(DEFAULT, "pool", "db", {"slots": 9}, expected=expected)
    assert stores.shared.get(DEFAULT, "pool", "db") == (2, {"slots": 2})


def test_documents_of_other_names_kinds_and_namespaces_are_others(stores: Stores) -> None:
    places = [(DEFAULT, "pool", "a"), (DEFAULT, "pool", "b"), (DEFAULT, "calendar", "a"), (Namespace("x"), "pool", "a")]
    for n, place in enumerate(places):
        assert stores.shared.put(*place, {"n": n}, expected=0)
    assert [stores.shared.get(*place) for place in places] == [(1, {"n": n}) for n in range(4)]


def test_any_document_comes_back(stores: Stores, examples: settings) -> None:
    @examples
    @given(document=st.dictionaries(texts, jsons, max_size=4))
    def check(document: dict[str, object]) -> None:
        name = fresh_key().name
        assert stores.shared.put(DEFAULT, "template", name, document, expected=0)
        assert stores.shared.get(DEFAULT, "template", name) == (1, document)

    check()


def test_a_document_is_looked_for_in_many_namespaces_at_once(stores: Stores) -> None:
    namespaces = [Namespace(f"n{n}") for n in range(130)]
    for n in range(0, 130, 2):
        assert stores.shared.put(namespaces[n], "member", "ann", {"n": n}, expected=0)
        assert stores.shared.put(namespaces[n + 1], "members", "ann", {}, expected=0)
        assert stores.shared.put(namespaces[n + 1], "member", "ann2", {}, expected=0)
    assert stores.shared.put(namespaces[2], "member", "ann", {"n": "again"}, expected=1)
    wanted = [*reversed(namespaces), namespaces[2], namespaces[2]]
    assert stores.shared.in_each(wanted, "member", "ann") == [
        stores.shared.get(namespace, "member", "ann") for namespace in wanted
    ]
    assert stores.shared.in_each([], "member", "ann") == []


# Lists.


def names(stores: Stores, kind: str, namespace: Namespace = DEFAULT) -> list[str]:
    return [one.name for one in stores.shared.listed(namespace, kind, limit=1_000)]


def test_documents_of_a_kind_are_listed_by_name(stores: Stores) -> None:
    assert stores.shared.listed(DEFAULT, "pool", limit=10) == []
    for name in ("b", "a-b", "a", "aa", "B"):
        assert stores.shared.put(DEFAULT, "pool", name, {"of": name}, expected=0)
    assert stores.shared.put(DEFAULT, "pool", "aa", {"of": "aa", "again": True}, expected=1)
    assert stores.shared.listed(DEFAULT, "pool", limit=10) == [
        SharedDocument("B", 1, {"of": "B"}),
        SharedDocument("a", 1, {"of": "a"}),
        SharedDocument("a-b", 1, {"of": "a-b"}),
        SharedDocument("aa", 2, {"of": "aa", "again": True}),
        SharedDocument("b", 1, {"of": "b"}),
    ]


def test_pages_of_a_list_meet_and_begin_after_any_name(stores: Stores) -> None:
    for n in range(11):
        assert stores.shared.put(DEFAULT, "member", f"m{n:02}", {}, expected=0)
    found: list[str] = []
    while page := stores.shared.listed(DEFAULT, "member", after=found[-1] if found else None, limit=3):
        assert len(page) <= 3
        assert page[0].name not in found, "the pages do not get on"
        found += [one.name for one in page]
    assert found == [f"m{n:02}" for n in range(11)]
    assert [one.name for one in stores.shared.listed(DEFAULT, "member", after="m04x", limit=1)] == ["m05"]
    assert [one.name for one in stores.shared.listed(DEFAULT, "member", after="", limit=1)] == ["m00"]
    assert stores.shared.listed(DEFAULT, "member", after="m10", limit=1) == []


def test_lists_hold_no_other_kind_and_no_other_namespace(stores: Stores) -> None:
    for kind in ("pool", "poo", "pools", "pool-x"):
        assert stores.shared.put(DEFAULT, kind, f"of-{kind}", {}, expected=0)
        assert stores.shared.put(Namespace("default-2"), kind, "elsewhere", {}, expected=0)
    for kind in ("pool", "poo", "pools", "pool-x"):
        assert names(stores, kind) == [f"of-{kind}"]
        assert names(stores, kind, Namespace("default-2")) == ["elsewhere"]


def test_a_name_may_be_anything(stores: Stores) -> None:
    for n, name in enumerate(STRANGE):
        assert stores.shared.put(DEFAULT, "member", name, {"n": n}, expected=0)
    assert [stores.shared.get(DEFAULT, "member", name) for name in STRANGE] == [
        (1, {"n": n}) for n in range(len(STRANGE))
    ]
    in_order = sorted(STRANGE)
    assert names(stores, "member") == in_order
    for n, name in enumerate(in_order):
        after = stores.shared.listed(DEFAULT, "member", after=name, limit=1)
        assert [one.name for one in after] == in_order[n + 1 : n + 2]
    for name in STRANGE[::2]:
        assert stores.shared.delete(DEFAULT, "member", name, expected=1)
    assert names(stores, "member") == sorted(STRANGE[1::2])


# Deleting.


def test_a_deleted_document_is_gone_and_can_be_made_again(stores: Stores) -> None:
    for document in ({"slots": 1}, {"slots": 2}):
        assert stores.shared.put(DEFAULT, "pool", "db", document, expected=0)
        assert stores.shared.get(DEFAULT, "pool", "db") == (1, document)
        assert stores.shared.delete(DEFAULT, "pool", "db", expected=1)
        assert stores.shared.get(DEFAULT, "pool", "db") is None
        assert names(stores, "pool") == []


def test_a_delete_of_another_revision_changes_nothing(stores: Stores) -> None:
    assert stores.shared.put(DEFAULT, "pool", "db", {"slots": 1}, expected=0)
    assert stores.shared.put(DEFAULT, "pool", "db", {"slots": 2}, expected=1)
    for expected in (0, 1, 3):
        assert not stores.shared.delete(DEFAULT, "pool", "db", expected=expected)
        assert not stores.shared.delete(DEFAULT, "pool", "db", expected=expected, deed=deed_at())
    assert stores.shared.get(DEFAULT, "pool", "db") == (2, {"slots": 2})
    assert stores.trail.deeds(DEFAULT, limit=10) == []


def test_a_delete_of_what_is_gone_already_is_done(stores: Stores) -> None:
    for expected in (0, 1, 5):
        assert stores.shared.delete(DEFAULT, "pool", "db", expected=expected)
        assert stores.shared.delete(DEFAULT, "pool", "db", expected=expected, deed=deed_at())
    assert stores.trail.deeds(DEFAULT, limit=10) == []


def test_a_delete_leaves_documents_of_other_places_alone(stores: Stores) -> None:
    places = [
        (DEFAULT, "pool", "a"),
        (DEFAULT, "pool", "a#"),
        (DEFAULT, "calendar", "a"),
        (Namespace("x"), "pool", "a"),
    ]
    for place in places:
        assert stores.shared.put(*place, {}, expected=0)
    assert stores.shared.delete(*places[0], expected=1)
    assert [stores.shared.get(*place) for place in places] == [None, (1, {}), (1, {}), (1, {})]


# Deeds.


def test_a_document_and_its_deed_are_written_together(stores: Stores) -> None:
    deeds = [deed_at(NOW + n * SECOND, f"d#{n}") for n in range(3)]
    assert stores.shared.put(DEFAULT, "pool", "db", {"slots": 1}, expected=0, deed=deeds[0])
    assert stores.shared.put(DEFAULT, "pool", "db", {"slots": 2}, expected=1, deed=deeds[1])
    assert stores.shared.get(DEFAULT, "pool", "db") == (2, {"slots": 2})
    assert stores.trail.deeds(DEFAULT, limit=10) == [deeds[1], deeds[0]]
    assert stores.shared.delete(DEFAULT, "pool", "db", expected=2, deed=deeds[2])
    assert stores.shared.get(DEFAULT, "pool", "db") is None
    assert stores.trail.deeds(DEFAULT, limit=10) == deeds[::-1]


def test_the_deed_may_be_of_another_namespace_than_the_document(stores: Stores) -> None:
    deed = deed_at(namespace="other")
    assert stores.shared.put(Namespace("_sweephand"), "token", "t", {}, expected=0, deed=deed)
    assert stores.trail.deeds(Namespace("other"), limit=10) == [deed]
    assert stores.trail.deeds(Namespace("_sweephand"), limit=10) == []


def test_a_put_that_loses_leaves_no_deed(stores: Stores) -> None:
    assert not stores.shared.put(DEFAULT, "pool", "db", {}, expected=1, deed=deed_at())
    assert stores.shared.put(DEFAULT, "pool", "db", {"slots": 1}, expected=0)
    for expected in (0, 2):
        assert not stores.shared.put(DEFAULT, "pool", "db", {"slots": 9}, expected=expected, deed=deed_at())
    assert stores.shared.get(DEFAULT, "pool", "db") == (1, {"slots": 1})
    assert stores.trail.deeds(DEFAULT, limit=10) == []


def test_a_put_repeated_with_its_deed_finds_the_document_as_it_wrote_it_and_one_deed(stores: Stores) -> None:
    assert stores.shared.put(DEFAULT, "pool", "db", {"slots": 1}, expected=0, deed=deed_at())
    assert not stores.shared.put(DEFAULT, "pool", "db", {"slots": 1}, expected=0, deed=deed_at())
    assert stores.shared.get(DEFAULT, "pool", "db") == (1, {"slots": 1})
    assert stores.trail.deeds(DEFAULT, limit=10) == [deed_at()]


def test_a_delete_repeated_with_its_deed_is_done_once(stores: Stores) -> None:
    assert stores.shared.put(DEFAULT, "pool", "db", {}, expected=0)
    for _ in range(2):
        assert stores.shared.delete(DEFAULT, "pool", "db", expected=1, deed=deed_at())
    assert stores.trail.deeds(DEFAULT, limit=10) == [deed_at()]


def test_a_put_that_is_repeated_after_others_deleted_its_document_keeps_its_one_deed(stores: Stores) -> None:
    assert stores.shared.put(DEFAULT, "pool", "db", {"slots": 1}, expected=0, deed=deed_at())
    assert stores.shared.delete(DEFAULT, "pool", "db", expected=1)
    assert stores.shared.put(DEFAULT, "pool", "db", {"slots": 1}, expected=0, deed=deed_at())
    assert stores.trail.deeds(DEFAULT, limit=10) == [deed_at()]


def test_a_document_is_not_written_under_the_id_of_another_deed(stores: Stores) -> None:
    stores.trail.append(deed_at())
    with pytest.raises(Defect):
        stores.shared.put(DEFAULT, "pool", "db", {}, expected=0, deed=deed_at(actor="mallory"))
    assert stores.shared.get(DEFAULT, "pool", "db") is None
    assert stores.trail.deeds(DEFAULT, limit=10) == [deed_at()]
