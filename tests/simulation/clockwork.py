"""Virtual time and cooperative actors: who acts next, and when, comes from one seed."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import count
from random import Random

from greenlet import GreenletExit, getcurrent, greenlet

A_SECOND = timedelta(seconds=1)


class Crash(GreenletExit):
    """The process of an actor dies: nothing may catch this."""


@dataclass
class Actor:
    """Something that acts: a process with a clock of its own."""

    name: str
    skew: timedelta
    life: Callable[[Actor], None]
    ends_at: datetime | None = None
    """When its process is ended, whatever it is at."""
    lives: int = 0
    glet: greenlet | None = None

    def __str__(self) -> str:
        return f"{self.name}.{self.lives}"


@dataclass
class Clockwork:
    """The loop: lets time pass to the next moment at which an actor wants to act, and lets it act."""

    rng: Random
    now: datetime
    story: list[str] = field(default_factory=list)
    _agenda: list[tuple[datetime, float, int, Callable[[], None]]] = field(default_factory=list)
    _numbers: count[int] = field(default_factory=count)
    _loop: greenlet | None = None
    _living: set[greenlet] = field(default_factory=set)
    _is_over: bool = False

    def at(self, moment: datetime, act: Callable[[], None]) -> None:
        """Do something at a moment; what falls on one moment comes in an order that the seed decides."""
        heapq.heappush(self._agenda, (max(moment, self.now), self.rng.random(), next(self._numbers), act))

    def run(self, until: datetime) -> None:
        """Let everything happen that happens up to a moment."""
        self._loop = getcurrent()
        while self._agenda and self._agenda[0][0] <= until:
            moment, _, _, act = heapq.heappop(self._agenda)
            self.now = moment
            act()
        self.now = until

    def end(self) -> None:
        """End the world: who sleeps for ever would keep all of it in memory, on a stack that no collector sees."""
        self._is_over = True
        self._agenda.clear()
        while self._living:
            self._living.pop().throw(GreenletExit)

    def tell(self, actor: object, what: str) -> None:
        """Add a line to the story."""
        self.story.append(f"{self.now:%d %H:%M:%S.%f} {actor!s:12} {what}")

    def start(self, actor: Actor, at: datetime) -> None:
        """Begin an actor's next life; when it ends, for whatever reason, it begins again a little later."""

        def live() -> None:
            actor.lives += 1
            actor.glet = greenlet(lambda: self._live(actor), parent=self._loop)
            self._living.add(actor.glet)
            actor.glet.switch()

        self.at(at, live)

    def once(self, actor: Actor) -> None:
        """Let an actor live once, from now on."""

        def live() -> None:
            actor.life(actor)
            self._living.discard(getcurrent())

        actor.glet = greenlet(live, parent=self._loop)
        self._living.add(actor.glet)
        self.at(self.now, actor.glet.switch)

    def sleep(self, duration: timedelta) -> None:
        """Called by an actor: let others act for a while."""
        if self._is_over:
            raise GreenletExit
        me = getcurrent()
        self.at(self.now + duration, lambda: me.switch() if not me.dead else None)
        assert self._loop is not None
        self._loop.switch()

    def _live(self, actor: Actor) -> None:
        try:
            actor.life(actor)
        except Crash:
            self.tell(actor, "DIES")
        self._living.discard(getcurrent())
        self.start(actor, self.now + A_SECOND * self.rng.uniform(0.5, 20))
