"""Calls that wait for work: each waits on the event loop, and one look for all of them finds out whose turn it is."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Coroutine, Sequence, Set
from functools import partial
from itertools import count
from typing import Any, Final, Protocol

from sweephand.api.asked import Patience
from sweephand.domain.ids import Namespace, RunKey
from sweephand.engine.match import Matched, Wanted
from sweephand.errors import SweephandError
from sweephand.local.answers import Answer, Turned, busy
from sweephand.local.limits import Limits
from sweephand.local.pool import Pool, T

logger: Final = logging.getLogger("sweephand.local")

LOOK_EVERY_S: Final = 0.05
_SHARE: Final = 0.05
"""The part of the time that looks may take: a look that takes long is followed by a longer pause."""
_AFTER_TROUBLE_S: Final = 1.0
_SPREAD: Final = 0.25
"""The part of their time by which some wait less than others: who came together is not to come back together."""
_STEPS: Final = 16
_IN_VAIN_S: Final = 0.25
"""How long nobody is sent for a run that somebody came for and did not get."""

Left = Callable[[], Coroutine[Any, Any, None]]
"""Ends when the caller has gone away."""
_Runs = frozenset[RunKey]
_NOTHING: Final[_Runs] = frozenset()


class Match(Protocol):
    """Deals what is on offer out to those who wait; see `engine.match`."""

    def __call__(self, line: Sequence[Wanted], *, taken: Set[RunKey]) -> list[Matched]: ...


class _Waiter:
    """A call in the line, and the runs that it is sent for when its turn has come."""

    __slots__ = ("turn", "wanted")

    def __init__(self, wanted: Wanted, turn: asyncio.Future[_Runs]) -> None:
        self.wanted = wanted
        self.turn = turn


class Polls:
    """Belongs to the event loop, all but the threads in which calls are made and looks taken.

    Those who came first are served first: whoever finds others in the line gets behind them, and whoever came in vain
    keeps the old place.
    """

    def __init__(self, match: Match | None, limits: Limits) -> None:
        self._match = match
        self._waiting_max = limits.polls
        self._calls = Pool("poll", threads=limits.poll_threads, waiting_max=limits.connections)
        self._looks = Pool("look", threads=1, waiting_max=0)
        self._places = count()
        self._line: dict[int, _Waiter] = {}
        self._awaited: Counter[tuple[Namespace, str]] = Counter()
        self._taken: set[RunKey] = set()
        self._in_vain: dict[RunKey, float] = {}
        self._looking: asyncio.Task[None] | None = None
        self._stopping = False

    @property
    def waiting(self) -> int:
        """How many are in the line."""
        return len(self._line)

    async def run(self, work: Callable[[], T]) -> T:
        """Work for such a call, in a thread: however many there are, the threads of other calls are free."""
        return await self._calls.run(work)

    async def answer(self, call: Callable[[Patience | None], Answer], left: Left) -> Answer | None:
        """The call's answer, once there is work or its time is over; None where its caller left before."""
        if self._match is None:
            return await self._calls.run(partial(call, None))
        leaving = asyncio.ensure_future(left())
        patience = Patience(self._is_behind)
        place, sent, deadline = next(self._places), _NOTHING, 0.0
        try:
            while (answer := await self._call(call, patience, leaving)) is not None:
                self._came_back(sent, in_vain=patience.wanted is not None)
                sent = _NOTHING
                wanted = patience.wanted
                if wanted is None or self._stopping:
                    return answer
                deadline = deadline or asyncio.get_running_loop().time() + held_for_s(patience.wait_s, place)
                found = await self._turn(place, wanted, deadline, leaving)
                if found is None:
                    return None
                sent = found
                if not sent and (wanted.least == 1 or self._stopping):
                    return answer  # which says that there is nothing, as the last look did
                patience.is_over = not sent
            return None
        finally:
            leaving.cancel()
            self._came_back(sent, in_vain=False)

    def stop(self) -> None:
        """Nobody waits any longer."""
        self._stopping = True
        for waiter in self._line.values():
            if not waiter.turn.done():
                waiter.turn.set_result(_NOTHING)

    async def _call(
        self, call: Callable[[Patience | None], Answer], patience: Patience, leaving: asyncio.Future[None]
    ) -> Answer | None:
        """One call; None where its caller left meanwhile. It must not take work for a worker that is gone."""
        calling = asyncio.ensure_future(self._calls.run(partial(call, patience)))
        either: set[asyncio.Future[Any]] = {calling, leaving}
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            if calling.done():
                return calling.result()
            patience.gone.set()
            return None
        finally:
            calling.cancel()

    async def _turn(self, place: int, wanted: Wanted, deadline: float, leaving: asyncio.Future[None]) -> _Runs | None:
        """The runs to come for; none where the time is over, and None where the caller left."""
        if len(self._line) >= self._waiting_max:
            raise Turned(busy("Too many workers wait for work: try again."))
        loop = asyncio.get_running_loop()
        waiter = self._line[place] = _Waiter(wanted, loop.create_future())
        queues = [(wanted.namespace, queue) for queue in wanted.queues]
        self._awaited.update(queues)
        if self._looking is None or self._looking.done():
            self._looking = loop.create_task(self._look_again_and_again())
        try:
            either: set[asyncio.Future[Any]] = {waiter.turn, leaving}
            left_s = max(deadline - loop.time(), 0)
            await asyncio.wait(either, timeout=left_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            del self._line[place]
            self._awaited.subtract(queues)
            self._awaited = +self._awaited
        found = waiter.turn.result() if waiter.turn.done() else _NOTHING
        waiter.turn.cancel()
        if leaving.done():
            self._came_back(found, in_vain=False)
            return None
        return found

    async def _look_again_and_again(self) -> None:
        """As long as anybody waits."""
        loop = asyncio.get_running_loop()
        pause_s = LOOK_EVERY_S
        while self._line:
            await asyncio.sleep(pause_s)
            begun = loop.time()
            try:
                await self._look(begun)
                pause_s = max(LOOK_EVERY_S, (loop.time() - begun) / _SHARE)
            except (SweephandError, Turned) as trouble:
                logger.warning("Nobody could look for those who wait for work: %s", trouble)
                pause_s = _AFTER_TROUBLE_S
            except Exception:
                logger.exception("Nobody could look for those who wait for work.")
                pause_s = _AFTER_TROUBLE_S

    async def _look(self, now: float) -> None:
        self._in_vain = {run: until for run, until in self._in_vain.items() if until > now}
        match = self._match
        waiters = [waiter for _, waiter in sorted(self._line.items()) if not waiter.turn.done()]
        if match is None or not waiters:
            return
        taken = self._taken | self._in_vain.keys()
        matched = await self._looks.run(partial(match, [one.wanted for one in waiters], taken=taken))
        for one in matched:
            waiter = waiters[one.place]
            if not waiter.turn.done():
                self._taken |= one.runs
                waiter.turn.set_result(one.runs)

    def _came_back(self, sent: _Runs, *, in_vain: bool) -> None:
        """From the runs that it was sent for."""
        self._taken -= sent
        if in_vain and sent:
            until = asyncio.get_running_loop().time() + _IN_VAIN_S
            self._in_vain |= dict.fromkeys(sent, until)

    def _is_behind(self, wanted: Wanted) -> bool:
        """Whether others wait for the same. It is asked from threads, and may be wrong for a moment."""
        return any(self._awaited[wanted.namespace, queue] > 0 for queue in wanted.queues)


def held_for_s(wait_s: float, place: int) -> float:
    """How long a caller is kept waiting who would wait so long, by its place among those who came."""
    return wait_s * (1 - _SPREAD * (place % _STEPS) / _STEPS)
