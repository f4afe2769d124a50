"""How fast cron expressions are walked: ours, croniter's and cronsim's, in a zone with clock changes.

`python -m bench.cron`; times are the best of several rounds, in microseconds per fire.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import islice
from zoneinfo import ZoneInfo

from croniter import croniter
from cronsim import CronSim

from sweephand.domain.expression import parse
from sweephand.domain.schedule import Schedule
from sweephand.domain.zones import zone

ZONE = "America/New_York"
START = datetime(2026, 1, 1, tzinfo=UTC)
ROUNDS = 5
EXPRESSIONS = {"*/5 * * * *": 20_000, "30 2 * * 0": 500, "0 0 29 2 *": 10}


def schedule(expression: str) -> Schedule:
    """Our compiled form."""
    recurrence = parse(expression, hash_id="bench")
    return Schedule(recurrence, timezone=ZONE)


def ours(expression: str, start: datetime) -> Iterator[datetime]:
    """Ours, as the engine calls it."""
    return schedule(expression).fires(start)


def by_croniter(expression: str, start: datetime) -> Iterator[datetime]:
    """croniter's next fire, again and again."""
    walk = croniter(expression, start.astimezone(zone(ZONE)), ret_type=datetime)
    return iter(walk.get_next, None)


def by_cronsim(expression: str, start: datetime) -> Iterator[datetime]:
    """cronsim's iterator."""
    return CronSim(expression, start.astimezone(ZoneInfo(ZONE)))


def best(call: Callable[[], object]) -> float:
    """The fastest of several rounds, in seconds."""
    rounds = []
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        call()
        rounds.append(time.perf_counter() - begun)
    return min(rounds)


def walk_us(walk: Callable[[str, datetime], Iterator[datetime]], expression: str, fires: int) -> float:
    """Microseconds per fire of a long walk, without compiling."""

    def total() -> float:
        iterator = walk(expression, START)
        begun = time.perf_counter()
        for _ in islice(iterator, fires):
            pass
        return time.perf_counter() - begun

    return min(total() for _ in range(ROUNDS)) / fires * 1e6


def next_us(expression: str) -> tuple[float, float, float]:
    """Microseconds of one `next_after` on a compiled schedule, and of the peers' first step."""
    compiled = schedule(expression)
    local = START.astimezone(zone(ZONE))
    times = 200
    own = best(lambda: [compiled.next_after(START) for _ in range(times)])
    croniters = best(lambda: [croniter(expression, local).get_next() for _ in range(times)])
    cronsims = best(lambda: [next(CronSim(expression, local)) for _ in range(times)])
    return own / times * 1e6, croniters / times * 1e6, cronsims / times * 1e6


def row(title: str, own: float, croniters: float, cronsims: float) -> str:
    """One line of the report."""
    factor = min(croniters, cronsims) / own
    return f"{title:28} {own:10.2f} {croniters:10.2f} {cronsims:10.2f} {factor:8.1f}x"


def main() -> None:
    """Print the comparison."""
    print(f"{f'µs in {ZONE}':28} {'sweephand':>10} {'croniter':>10} {'cronsim':>10} {'faster':>9}")
    for expression, fires in EXPRESSIONS.items():
        figures = [walk_us(walk, expression, fires) for walk in (ours, by_croniter, by_cronsim)]
        print(row(f"walk {expression}", *figures))
    for expression in EXPRESSIONS:
        print(row(f"next {expression}", *next_us(expression)))
    per_second = schedule("* * * * * *")
    year = START.replace(year=START.year + 1)
    counted = best(lambda: per_second.count(START, year))
    newest = best(lambda: per_second.last(START, year, 100))
    print(f"a year of seconds: count {counted * 1e3:.2f} ms, the newest 100 {newest * 1e3:.2f} ms")


if __name__ == "__main__":
    main()
