"""docs/api.md is what the routes say."""

from __future__ import annotations

from pathlib import Path

from sweephand.api.app import document_alone
from sweephand.api.reference import page

PAGE = Path(__file__).parent.parent.parent / "docs" / "api.md"


def test_the_page_in_docs_is_the_one_that_make_docs_writes() -> None:
    assert PAGE.read_text() == page(document_alone()), "run `make docs`"
