"""Advances, ends and wakes in any order, by those who read a while ago: both stores must give the same answers."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Final

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import rule
from msgspec.structs import replace

from sweephand.domain.progress import Progress
from tests.contract.both import BothEngines
from tests.contract.samples import NOW, SECOND, run_at
from tests.contract.world import Stores

RUN: Final = run_at().key
names: Final = st.frozensets(st.sampled_from(("a", "b", "load[0]", "load[1]")))
ago: Final = st.integers(0, 3)
"""Which reading somebody goes by: the last, or one before it."""


class Progresses(BothEngines):
    """Whatever happens, both say the same."""

    def begin(self) -> None:
        self.read: list[Progress] = [Progress(RUN, b"\x00" * 4, NOW, nonce="born")]
        self.both(lambda stores: stores.dags.begin(self.read[0]))

    def _did(self, ask: Callable[[Stores], object], *, times: int = 1) -> None:
        for _ in range(times):
            self.both(ask)
        found = self.both(lambda stores: stores.dags.get(RUN))
        assert found is not None
        self.read.insert(0, found)

    def _known(self, ago: int) -> Progress:
        return self.read[min(ago, len(self.read) - 1)]

    @rule(tasks=names)
    def note(self, tasks: frozenset[str]) -> None:
        """Whether the names are in the answer, the port leaves open."""
        self._did(lambda stores: (told := stores.dags.note(RUN, tasks)) and replace(told, changed=frozenset()))

    @rule(ago=ago, taken=names, times=st.integers(1, 2))
    def absorb(self, ago: int, taken: frozenset[str], times: int) -> None:
        before, number = self._known(ago), next(self.numbers)
        after = before.moved(
            nonce=f"n{number}",
            changed=before.changed - taken,
            states=bytes([number % 256] * 4),
            instances={2: b"\x14" * (number % 3)} if number % 2 else {},
            waves=before.waves + 1,
        )
        self._did(lambda stores: stores.dags.absorb(before, after), times=times)

    @rule(ago=ago, token=st.sampled_from(("one", "other")), times=st.integers(1, 2))
    def sleep(self, ago: int, token: str, times: int) -> None:
        known = self._known(ago)
        self._did(lambda stores: stores.dags.sleep(known, token), times=times)

    @rule(ago=ago, within=st.sampled_from((SECOND, 2 * SECOND)), times=st.integers(1, 2))
    def wake(self, ago: int, within: timedelta, times: int) -> None:
        known, until = self._known(ago), self.clock.now() + within
        if known.token is not None:
            self._did(lambda stores: stores.dags.waking(known, until=until), times=times)

    @rule(ago=ago)
    def woken(self, ago: int) -> None:
        known = self._known(ago)
        if known.token is not None:
            self._did(lambda stores: stores.dags.woken(known))


TestProgresses = Progresses.TestCase
TestProgresses.settings = settings(max_examples=25, stateful_step_count=30, deadline=None)
