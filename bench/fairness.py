"""Two namespaces on eight workers: a small one beside a backlog of 10,000, and two that share by weight.

Tasks take 50 ms, so that eight workers do 160 a second at most. The small namespace's ten runs are triggered one after
the other while the backlog waits; without fair shares, each would wait for a minute.
"""

from __future__ import annotations

from bench.herd import Herd, Tasks, herd, told

WORKERS = 8
TASK_S = 0.05
BACKLOG = 10_000
FEW = 10
SMALL_P99_S = 1.0
WEIGHTS = {"gold": 3, "plain": 1}
QUEUED_EACH = 2_000
COUNTED_S = 15.0
SHARE_OFF_MAX = 0.10


def main() -> None:
    """Print both figures; the bars are the brief's."""
    with herd(Tasks(TASK_S), workers=WORKERS) as place:
        _small_beside_large(place)
    with herd(Tasks(TASK_S), workers=WORKERS) as place:
        _by_weight(place)


def _small_beside_large(place: Herd) -> None:
    for name in ("large", "small"):
        place.namespace(name)
    large, small = place.put("large", "job"), place.put("small", "job")
    place.trigger(large, BACKLOG)
    place.until(lambda: len(place.tasks.began["large"]) >= 4 * WORKERS)
    for count in range(1, FEW + 1):
        place.trigger(small, 1)
        place.until(lambda count=count: len(place.tasks.began["small"]) >= count)  # type: ignore[misc]
    left = BACKLOG - len(place.tasks.began["large"])
    p99 = told(f"small namespace, {left:,} of another waiting", place.tasks.waits_s("small"))
    assert left > BACKLOG / 2, "the backlog was gone before the small namespace was through"
    assert p99 < SMALL_P99_S, f"the small namespace's p99 is {p99:.2f} s: at most {SMALL_P99_S} s is right"


def _by_weight(place: Herd) -> None:
    for name, weight in WEIGHTS.items():
        place.namespace(name, weight)
    keys = {name: place.put(name, "job") for name in WEIGHTS}
    for key in keys.values():
        place.trigger(key, QUEUED_EACH)
    began = place.tasks.began
    place.until(lambda: all(len(began[name]) >= WORKERS for name in WEIGHTS))
    before = {name: len(began[name]) for name in WEIGHTS}
    counted = int(COUNTED_S / TASK_S * WORKERS * 0.6)
    place.until(lambda: sum(len(began[name]) - before[name] for name in WEIGHTS) >= counted)
    done = {name: len(began[name]) - before[name] for name in WEIGHTS}
    for name, weight in WEIGHTS.items():
        share, owed = done[name] / sum(done.values()), weight / sum(WEIGHTS.values())
        print(f"{f'{name}, weight {weight}':52} {done[name]:6} runs   {share:6.1%} of all, {owed:.0%} are owed")
        off = abs(share / owed - 1)
        assert off < SHARE_OFF_MAX, f"{name} is {off:.0%} off its share: at most {SHARE_OFF_MAX:.0%} is right"


if __name__ == "__main__":
    main()
