"""Who is next: which of the work that waits gets a worker that is free (001-AL1 to 001-AL4).

First the priority, then the namespace that has had the least of the workers for its weight, then who came first. What
is shared is workers' time, not counts of runs: a namespace of long tasks gets no more of it than one of short ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from msgspec import Struct

from sweephand.domain.job import Priority

AGEING: Final = timedelta(minutes=1)
"""After waiting this long, work may overtake the priority above its own; after twice as long, the one above that."""
OVERTAKEN_EVERY: Final = 4
"""Of so many workers, one at most goes to work that overtakes: a long backlog of low priority must not invert them."""
WEIGHT_MAX: Final = 100

_EXPECTED_S: Final = 1.0
"""How long a task takes where nothing is known of any."""
_LEARNT: Final = 0.2
"""How much the last task says about the next."""
_CREDIT_TASKS: Final = 4.0
"""How far a namespace can be behind the others, in the longest tasks of any of them; what it did without for longer is
forgotten, not paid back at once."""
_RANKS: Final = {priority.value: rank for rank, priority in enumerate(Priority)}


class Waiting(Struct, frozen=True):
    """The work of one priority that waits in one namespace, and since when the oldest of it does."""

    priority: str
    namespace: str
    since: datetime

    def rank(self, now: datetime, *, aged: bool) -> int:
        """0 is served first; by age too, where that is asked for."""
        rank = _RANKS[self.priority]
        return max(rank - max((now - self.since) // AGEING, 0), 0) if aged else rank


def ageing_of(priority: Priority) -> timedelta:
    """How much older work of this priority must be than that of the highest, to come before it."""
    return AGEING * _RANKS[priority]


class Shares:
    """What each namespace has had of the workers of one process: start-time fair queueing over workers' seconds.

    A namespace's account is the time that its tasks kept workers, divided by its weight; who would have the smallest
    after one task more, and those under way, is next. Accounts are kept only of those that wait or work, so that nobody
    saves up while away.
    """

    def __init__(self) -> None:
        self._accounts: dict[str, float] = {}
        self._tasks_s: dict[str, float] = {}
        self._at: datetime | None = None
        self._handed_out = 0

    def spend(self, in_use: Mapping[str, int], weights: Mapping[str, int], *, now: datetime) -> None:
        """Time passed since this was called last; so many workers were kept by each namespace."""
        passed_s = (now - self._at).total_seconds() if self._at is not None else 0.0
        self._at = now
        for namespace, workers in in_use.items():
            if workers:
                spent = max(passed_s, 0.0) * workers / weights.get(namespace, 1)
                self._accounts[namespace] = self._accounts.get(namespace, self._least()) + spent

    def ended(self, namespace: str, took: timedelta) -> None:
        """A task took so long: the next are expected to."""
        seconds = max(took.total_seconds(), 0.0)
        known = self._tasks_s.get(namespace, seconds)
        self._tasks_s[namespace] = known + _LEARNT * (seconds - known)

    def handed_out(self, count: int) -> None:
        """So many workers were given to what `allot` named."""
        self._handed_out += count

    def allot(
        self,
        waiting: Sequence[Waiting],
        room: int,
        *,
        in_use: Mapping[str, int],
        weights: Mapping[str, int],
        now: datetime,
    ) -> Counter[Waiting]:
        """How many workers each gets if it has work for them, in the order in which they are served.

        Nothing changes by asking: it may be asked again for the same workers.
        """
        if not waiting:
            return Counter()
        self._settle({one.namespace for one in waiting}, in_use)
        by_priority, by_age = _first(waiting, now, aged=False), _first(waiting, now, aged=True)
        if all(one.priority == by_priority[0].priority for one in by_age):
            by_age = by_priority  # nobody overtakes: among equals, age is no reason for a larger share
        task_s = {one.namespace: self._expected_s(one.namespace) / weights.get(one.namespace, 1) for one in waiting}
        kept = dict(in_use)
        allotted: Counter[Waiting] = Counter()
        for number in range(self._handed_out, self._handed_out + room):
            chosen = min(
                by_age if number % OVERTAKEN_EVERY == OVERTAKEN_EVERY - 1 else by_priority,
                key=lambda one: (
                    self._accounts[one.namespace] + task_s[one.namespace] * (kept.get(one.namespace, 0) + 1),
                    one.since,
                    one.namespace,
                ),
            )
            kept[chosen.namespace] = kept.get(chosen.namespace, 0) + 1
            allotted[chosen] += 1
        return allotted

    def _expected_s(self, namespace: str) -> float:
        """How long its next task takes; where none has ended yet, as long as others' do."""
        others = self._tasks_s.values()
        return self._tasks_s.get(namespace) or (sum(others) / len(others) if others else _EXPECTED_S)

    def _settle(self, waiting: set[str], in_use: Mapping[str, int]) -> None:
        """Close the accounts of those who are away, open those of who came, and forget old debts."""
        present = waiting | {namespace for namespace, workers in in_use.items() if workers}
        self._accounts = {namespace: had for namespace, had in self._accounts.items() if namespace in present}
        self._tasks_s = {namespace: took for namespace, took in self._tasks_s.items() if namespace in present}
        credit_s = _CREDIT_TASKS * max(map(self._expected_s, present), default=_EXPECTED_S)
        floor = max(self._accounts.values(), default=0.0) - credit_s
        start = max(self._least(), floor)
        for namespace in present:
            self._accounts[namespace] = max(self._accounts.get(namespace, start), floor)

    def _least(self) -> float:
        return min(self._accounts.values(), default=0.0)


def _first(waiting: Sequence[Waiting], now: datetime, *, aged: bool) -> list[Waiting]:
    """Those of the best rank."""
    ranks = [one.rank(now, aged=aged) for one in waiting]
    best = min(ranks)
    return [one for one, rank in zip(waiting, ranks, strict=True) if rank == best]
