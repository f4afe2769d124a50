"""The ports as an unreliable world shows them: each call is a moment for something to go wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from msgspec.structs import replace

from sweephand.errors import Unavailable
from sweephand.messages import encode
from sweephand.ports import Letter
from tests.simulation.clockwork import A_SECOND, Actor, Clockwork, Crash

READS = frozenset(
    {"head", "heads", "heads_of", "get", "read", "count", "of_job", "dropped", "pages", "version"}
    | {"listed", "deeds", "open", "active"}
)


@dataclass
class Odds:
    """How often what goes wrong; all zero once the faults stop."""

    crash: float = 0.0015
    refused: float = 0.006
    unheard: float = 0.008
    belated: float = 0.002
    freeze: float = 0.003
    freeze_s: float = 40.0
    doubled: float = 0.03
    lost: float = 0.0
    late: float = 0.03
    late_s: float = 240.0


CALM = Odds(crash=0, refused=0, unheard=0, belated=0, freeze=0, doubled=0, lost=0, late=0)


@dataclass
class Weather:
    """The present odds, and what they led to."""

    work: Clockwork
    odds: Odds
    happened: Counter[str] = field(default_factory=Counter)
    below_ports: bool = False
    """Calls fail in the client below the ports, not in the ports."""

    def strikes(self, what: str, odds: float) -> bool:
        if odds <= 0 or self.work.rng.random() >= odds:
            return False
        self.happened[what] += 1
        return True

    @property
    def faults(self) -> int:
        return self.happened.total() - self.happened["crash"]


class FaultyPort:
    """One port, as one actor sees it."""

    def __init__(self, name: str, port: Any, actor: Actor, weather: Weather) -> None:
        self._name = name
        self._port = port
        self._actor = actor
        self._weather = weather
        self._verbs: dict[str, Callable[..., Any]] = {}

    def __getattr__(self, verb: str) -> Callable[..., Any]:
        if verb not in self._verbs:
            self._verbs[verb] = self._faulty(verb, getattr(self._port, verb))
        return self._verbs[verb]

    def _faulty(self, verb: str, real: Callable[..., Any]) -> Callable[..., Any]:
        weather, work, actor = self._weather, self._weather.work, self._actor
        what = f"{self._name}.{verb}"
        is_read = verb in READS

        def call(*args: Any, **kwargs: Any) -> Any:
            odds = weather.odds
            if weather.strikes("crash", odds.crash / 2):
                work.tell(actor, f"crash before {what}")
                raise Crash
            work.sleep(self._latency())
            if actor.ends_at is not None and work.now > actor.ends_at:
                work.tell(actor, f"took too long, ended before {what}")
                raise Crash
            if not weather.below_ports and weather.strikes("refused", odds.refused):
                work.tell(actor, f"{what} fails")
                raise Unavailable(f"{what} failed.")
            if not is_read and weather.strikes("belated", odds.belated):
                self._belated(what, real, args, kwargs)
                raise Unavailable(f"{what} timed out.")
            answer = real(*args, **kwargs)
            if not is_read and not weather.below_ports and weather.strikes("unheard", odds.unheard):
                work.tell(actor, f"{what} takes effect, answer lost")
                raise Unavailable(f"{what} timed out.")
            if weather.strikes("crash", odds.crash / 2):
                work.tell(actor, f"crash after {what}")
                raise Crash
            return answer

        return call

    def _latency(self) -> timedelta:
        odds, rng = self._weather.odds, self._weather.work.rng
        if self._weather.strikes("freeze", odds.freeze):
            asleep = A_SECOND * rng.expovariate(1 / odds.freeze_s)
            self._weather.work.tell(self._actor, f"freezes for {asleep.total_seconds():.0f} s in {self._name}")
            return asleep
        return A_SECOND * rng.uniform(0.001, 0.05)

    def _belated(self, what: str, real: Callable[..., Any], args: Any, kwargs: Any) -> None:
        """The call reaches the service long after its caller has given up."""
        work = self._weather.work
        delay = A_SECOND * work.rng.uniform(1, 90)
        work.tell(self._actor, f"{what} will take effect in {delay.total_seconds():.0f} s, caller gives up")

        actor, life = self._actor, self._actor.lives

        def arrive() -> None:
            # Written by who asked for it, who may be dead, and its successor at work.
            present, actor.lives = actor.lives, life
            try:
                with suppress(Unavailable):  # nobody is there to hear it
                    real(*args, **kwargs)
            finally:
                actor.lives = present

        work.at(work.now + delay, arrive)


class FaultyQueue:
    """A queue that doubles, delays and (where the odds say so) loses messages; it sits behind the faulty port."""

    def __init__(self, queue: Any, weather: Weather) -> None:
        self._queue = queue
        self._weather = weather

    def send(self, letters: Sequence[Letter]) -> None:
        out: list[Letter] = []
        odds, work = self._weather.odds, self._weather.work
        for letter in letters:
            if self._weather.strikes("lost", odds.lost):
                work.tell("queue", f"loses {encode(letter.message)}")
                continue
            if self._weather.strikes("late", odds.late):
                late = A_SECOND * round(work.rng.uniform(1, odds.late_s))
                letter = replace(letter, delay=min(letter.delay + late, timedelta(minutes=15)))
            out.append(letter)
            if self._weather.strikes("doubled", odds.doubled):
                out.append(letter)
        if out:
            self._queue.send(out)
