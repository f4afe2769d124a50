"""A scheduler for tests: virtual time, in memory, one thread, no sleeping. See docs/testing.md."""

from sweephand.testing.scheduler import VirtualScheduler
from sweephand.testing.tasks import Permanent
from sweephand.testing.virtual import SeededDice, VirtualClock

__all__ = ["Permanent", "SeededDice", "VirtualClock", "VirtualScheduler"]
