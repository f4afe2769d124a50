"""Two engines side by side, for machines that ask both the same."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from datetime import timedelta
from typing import TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from sweephand.embedded import open_stores
from tests.contract.samples import MINUTE, SECOND
from tests.contract.world import Stores, VirtualClock
from tests.moto_world import moto_world

T = TypeVar("T")


class BothEngines(RuleBasedStateMachine):
    """Opens the engines, and compares everything at the end."""

    @initialize()
    def open(self) -> None:
        self.resources = ExitStack()
        self.clock = VirtualClock()
        sqlite = open_stores(None, clock=self.clock)
        self.resources.callback(sqlite.close)
        self.sqlite: Stores = sqlite
        self.moto: Stores = self.resources.enter_context(moto_world(self.clock))
        self.numbers = iter(range(1, 1_000_000))
        self.begin()

    def begin(self) -> None:
        """What a machine knows at first."""

    def compare_everything(self) -> None:
        """What must be the same in the end."""

    def teardown(self) -> None:
        if hasattr(self, "resources"):
            try:
                self.compare_everything()
            finally:
                self.resources.close()

    def both(self, ask: Callable[[Stores], T]) -> T:
        """The answer that both gave."""
        ours, theirs = ask(self.sqlite), ask(self.moto)
        assert ours == theirs, f"\nSQLite: {ours}\nAWS:    {theirs}"
        return ours

    @rule(by=st.sampled_from((SECOND, 59 * SECOND, 5 * MINUTE)))
    def time_passes(self, by: timedelta) -> None:
        self.clock.advance(by)
