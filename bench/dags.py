"""How long runs of several tasks take from end to end, in one process on an SQLite file, with tasks that do nothing.

A chain of ten and one to a hundred to one, each the median of several runs; then what a task costs in runs of a hundred
and of five thousand, side by side and in a chain, and that the largest runs come to their end.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from time import monotonic, sleep
from typing import Any

from bench.herd import Herd, Tasks, herd
from sweephand.domain.ids import JobKey
from sweephand.domain.run import RunState
from sweephand.engine.trigger import trigger

WORKERS = 32
ROUNDS = 9
NOTHING = {"command": ["true"]}
CHAIN_OF_TEN_MAX_S = 0.060
FAN_OF_HUNDRED_MAX_S = 0.400
PER_TASK_RATIO_MAX = 2.0
WITHIN_S = 900.0
POLL_S = 0.001

Graph = list[dict[str, Any]]


def chain(length: int) -> Graph:
    """One after the other."""
    return [
        {"id": f"t{number}", "run": NOTHING, **({"needs": [f"t{number - 1}"]} if number else {})}
        for number in range(length)
    ]


def fan(width: int) -> Graph:
    """One, then so many side by side, then one."""
    middle = [{"id": f"m{number}", "needs": ["first"], "run": NOTHING} for number in range(width)]
    last = {"id": "last", "needs": [one["id"] for one in middle], "run": NOTHING}
    return [{"id": "first", "run": NOTHING}, *middle, last]


def took_s(place: Herd, key: JobKey) -> float:
    """One run, from its trigger until its end is in the store."""
    began = monotonic()
    run = trigger(place.world, key)
    while not (found := place.world.runs.get(run.key)) or not found.is_terminal:
        assert monotonic() - began < WITHIN_S, "it takes too long"
        sleep(POLL_S)
    assert found.state is RunState.SUCCEEDED, found
    return monotonic() - began


def main() -> None:
    with herd(Tasks(), workers=WORKERS) as place:
        ten = _median_s(place, "chain-10", chain(10))
        hundred = _median_s(place, "fan-100", fan(100))
        print(f"{'chain of 10, end to end':44} {ten * 1000:9.0f} ms")
        print(f"{'1 to 100 to 1, end to end':44} {hundred * 1000:9.0f} ms")
        few = [_per_task_s(place, "wide", fan, 100, rounds=5), _per_task_s(place, "chain", chain, 100, rounds=5)]
        many = [_per_task_s(place, "wide", fan, 5_000), _per_task_s(place, "chain", chain, 2_000)]
        _per_task_s(place, "wide", fan, 9_998)
    assert ten < CHAIN_OF_TEN_MAX_S, (
        f"a chain of ten takes {ten * 1000:.0f} ms: {CHAIN_OF_TEN_MAX_S * 1000:.0f} are right"
    )
    assert hundred < FAN_OF_HUNDRED_MAX_S, f"one to a hundred to one takes {hundred * 1000:.0f} ms"
    for small, large in zip(few, many, strict=True):
        assert large < PER_TASK_RATIO_MAX * small, f"a task of a large run costs {large / small:.1f} times as much"


def _median_s(place: Herd, name: str, tasks: Graph) -> float:
    key = place.put("default", name, tasks=tasks)
    took_s(place, key)
    return median(took_s(place, key) for _ in range(ROUNDS))


def _per_task_s(place: Herd, shape: str, graph: Callable[[int], Graph], size: int, rounds: int = 1) -> float:
    key = place.put("default", f"{shape}-{size}-large", tasks=graph(size))
    each = median(took_s(place, key) for _ in range(rounds)) / size
    print(f"{f'{shape}, {size:,} tasks':44} {each * 1000:9.2f} ms a task, {each * size:7.1f} s", flush=True)
    return each


if __name__ == "__main__":
    main()
