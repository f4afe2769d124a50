"""Schemathesis against the served API: whatever it makes of the OpenAPI document, the answers keep to it.

Every operation has a place of its own, with a few things in it that its parameters are pointed at.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, settings

from tests.api.fuzz import CONFIG, SOAK, Place, Switchboard, adapted, described, register_formats
from tests.local.serving import serving

EXAMPLES: Final = 150 if SOAK else 10
"""Not 100, which is Hypothesis' default: schemathesis takes it for none, and takes the profile's instead."""

register_formats()
schema = schemathesis.openapi.from_dict(described(), config=CONFIG)


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[Switchboard, str]]:
    board = Switchboard()
    with serving(board) as server:
        yield board, f"http://127.0.0.1:{server.port}/api/v1"


@pytest.fixture(scope="module")
def session() -> Iterator[requests.Session]:
    with requests.Session() as one:
        yield one


@pytest.fixture
def place(served: tuple[Switchboard, str]) -> Iterator[Place]:
    with Place() as one:
        served[0].place = one
        yield one


@schema.parametrize()
@settings(
    max_examples=EXAMPLES,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.filter_too_much],
)
def test_every_answer_keeps_to_the_document(
    case: schemathesis.Case[Any], place: Place, served: tuple[Switchboard, str], session: requests.Session
) -> None:
    place.restore()
    adapted(case, place)
    headers = {"Authorization": f"Bearer {place.token}"}
    answer = case.call_and_validate(base_url=served[1], session=session, headers=headers)
    if case.method != "GET" and answer.status_code < 300:
        place.changed()
