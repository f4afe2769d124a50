"""The contract of `Shared`: documents under revisions."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from sweephand.domain.ids import Namespace
from tests.contract.samples import DEFAULT, fresh_key, jsons, texts
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
