"""How many requests a namespace may make: a bucket each, filled at its rate."""

from __future__ import annotations

import threading
from datetime import datetime
from typing import Final

from sweephand.domain.ids import Namespace
from sweephand.errors import TooMany

_BURST_S: Final = 2
"""A bucket holds this many seconds' worth."""
_BUCKETS_MAX: Final = 10_000


class Throttle:
    """Of one process: on AWS each function instance counts for itself, and the stage's own limit counts for all."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._buckets: dict[Namespace, tuple[float, datetime]] = {}

    def admit(self, namespace: Namespace, *, rate: int, now: datetime) -> None:
        """Take one request out of the bucket, or refuse it with the time to come back."""
        with self._lock:
            level, filled_at = self._buckets.get(namespace, (float(rate * _BURST_S), now))
            passed_s = max((now - filled_at).total_seconds(), 0.0)
            level = min(level + passed_s * rate, float(rate * _BURST_S))
            if level < 1:
                self._buckets[namespace] = (level, now)
                raise TooMany(f"Namespace {namespace} makes more than {rate} requests a second.", (1 - level) / rate)
            if len(self._buckets) >= _BUCKETS_MAX and namespace not in self._buckets:
                self._buckets.clear()
            self._buckets[namespace] = (level - 1, now)
