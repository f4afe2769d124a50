"""Every verb, every port call that it makes, every fault: the world comes to the same end."""

from __future__ import annotations

from typing import Final

import pytest

from tests.engine.faults import Fault, half_done, trouble
from tests.engine.stories import ANEW, CLIENTS, DELIVERIES, REPORTS

FAILURES: Final = (Fault.CRASH, Fault.REFUSED, Fault.UNHEARD)
CALLS: Final = CLIENTS | REPORTS
ONCE: Final = CLIENTS | ANEW


@pytest.mark.parametrize("fault", list(Fault))
@pytest.mark.parametrize("verb", DELIVERIES)
def test_a_delivery_that_goes_wrong_anywhere_comes_to_the_same_end(verb: str, fault: Fault) -> None:
    found = trouble(DELIVERIES[verb], fault, repeats=False)
    assert not found, "\n".join(found)


@pytest.mark.parametrize("fault", list(Fault))
@pytest.mark.parametrize("verb", CALLS)
def test_a_call_that_goes_wrong_anywhere_and_is_repeated_comes_to_the_same_end(verb: str, fault: Fault) -> None:
    found = trouble(CALLS[verb], fault, repeats=True)
    assert not found, "\n".join(found)


@pytest.mark.parametrize("fault", FAILURES)
@pytest.mark.parametrize("verb", ONCE)
def test_a_call_that_goes_wrong_anywhere_and_is_given_up_did_all_or_nothing(verb: str, fault: Fault) -> None:
    found = half_done(ONCE[verb], fault)
    assert not found, "\n".join(found)
