"""A thousand workers pull from one queue at once, each with a thread of its own, over the engine's calls.

Every run must be pulled and completed once: an attempt more, or a run that stays behind, misses the bar.
"""

from __future__ import annotations

import threading
from collections import Counter
from time import monotonic

from bench.herd import Herd, Tasks, herd, states
from bench.served import quantile
from sweephand.calls import Succeeded
from sweephand.domain.ids import Namespace, RunKey
from sweephand.engine.lease import lease, report
from sweephand.errors import Unavailable

WORKERS = 1_000
RUNS = 3_000
WITHIN_S = 100.0
STACK_BYTES = 256 * 1024
NAMESPACE = Namespace("crowd")


def main() -> None:
    with herd(Tasks(), workers=4) as place:
        key = place.put(NAMESPACE, "job", run={"external": {"queue": "one"}})
        place.trigger(key, RUNS)
        place.until(lambda: _offered(place) >= RUNS)
        done: Counter[RunKey] = Counter()
        took_s: list[float] = []
        over = threading.Event()
        begun = monotonic()
        threading.stack_size(STACK_BYTES)
        threads = [
            threading.Thread(target=_pull, args=(place, f"w{number}", done, took_s, over), daemon=True)
            for number in range(WORKERS)
        ]
        threading.stack_size(0)
        for thread in threads:
            thread.start()
        place.until(lambda: done.total() >= RUNS, WITHIN_S)
        seconds = monotonic() - begun
        over.set()
        for thread in threads:
            thread.join()
        found = states(place.stores, NAMESPACE)
        attempts = place.stores.database.rows("SELECT count(*), sum(epoch) FROM runs")[0]
    print(
        f"{WORKERS:,} workers, {RUNS:,} runs: {RUNS / seconds:,.0f} runs a second, {len(took_s):,} calls; "
        f"p50 {quantile(took_s, 0.5):.2f} s, p99 {quantile(took_s, 0.99):.2f} s a call"
    )
    assert found == {"succeeded": RUNS}, f"not all have succeeded: {found}"
    assert max(done.values()) == 1, "a run was pulled twice"
    assert attempts == (RUNS, RUNS), f"there were {attempts[1]} attempts of {RUNS} runs"


def _offered(place: Herd) -> int:
    count: int = place.stores.database.rows("SELECT count(*) FROM offers")[0][0]
    return count


def _pull(place: Herd, worker: str, done: Counter[RunKey], took_s: list[float], over: threading.Event) -> None:
    while not over.is_set():
        asked = monotonic()
        try:
            leased = lease(place.world, NAMESPACE, worker, ["one"], most=1)
        except Unavailable:
            leased = []
        took_s.append(monotonic() - asked)
        for one in leased:
            report(place.world, one.lease.id, NAMESPACE, epoch=one.lease.run.epoch, outcome=Succeeded())
            done[one.lease.run.key] += 1
        if not leased:
            over.wait(0.5)


if __name__ == "__main__":
    main()
