"""The keys that sessions are believed by."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as StillWaits
from threading import Event
from typing import Any

import pytest

from sweephand.api.sessions import Issuer, PublishedKeys
from sweephand.clock import SystemClock

MOMENT_S = 0.2


def test_who_comes_while_keys_are_fetched_waits_for_them_and_is_not_refused() -> None:
    issuer = Issuer(Issuer.new_key(), url="http://127.0.0.1", clock=SystemClock())
    key_id = issuer.jwks()["keys"][0]["kid"]
    asked, answers = Event(), Event()

    def fetch() -> Mapping[str, Any]:
        asked.set()
        answers.wait()
        return issuer.jwks()

    keys = PublishedKeys(fetch, SystemClock())
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(keys.get, key_id)
        asked.wait()
        second = threads.submit(keys.get, key_id)
        try:
            with pytest.raises(StillWaits):
                second.result(MOMENT_S)
        finally:
            answers.set()
        assert first.result() is second.result() is not None
