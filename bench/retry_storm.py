"""Five thousand runs of one namespace fail together and are retried, beside a namespace with a run now and then.

Compared within one run: how long the quiet namespace's runs take from their trigger to the end of their task, before
the storm and for half a minute of it. Tasks take 50 ms on 32 workers. Then nothing is lost or doubled: every run is in
a state that a storm leaves it in, and began as often as it says; and when the database is up again, later than the
budget holds anything back, all that are open succeed, once. RUNS=300 makes a smaller storm, STORM_S=10 a shorter one.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from datetime import timedelta
from time import sleep

from bench.herd import Herd, Tasks, herd, states, told
from sweephand.calls import Call, Outcome
from sweephand.clock import SystemClock
from sweephand.domain.budget import HELD_MAX, PER_MINUTE, SHARE
from sweephand.domain.ids import JobKey
from sweephand.domain.retry import Failure

RUNS = int(os.environ.get("RUNS", "5000"))
WORKERS = 32
TASK_S = 0.05
QUIET_S = 10.0
STORM_S = float(os.environ.get("STORM_S", "30"))
EVERY_S = 0.04
RATIO_MAX = 2.0
RETRY = {"attempts": 10, "backoff": "exponential", "delay": "2s", "maxDelay": "10s"}
LATER = HELD_MAX + timedelta(minutes=1)
OPEN = {"queued", "retrying"}
"""What a storm leaves behind; `failed` too, of what had all its attempts."""


def fails(_call: Call) -> Outcome:
    return Failure("Down", "the database is down")


def main() -> None:
    tasks, over = Tasks(TASK_S, rules={"storm": fails}), threading.Event()
    with herd(tasks, workers=WORKERS) as place:
        trickled = place.put("quiet", "job")
        trickle = place.trickle(trickled, every_s=EVERY_S, over=over)
        storm = place.put("storm", "job", retry=RETRY)
        sleep(QUIET_S)
        before = tasks.waits_s("quiet")
        place.trigger(storm, RUNS)
        begun_at = SystemClock().now()
        sleep(STORM_S)
        after = tasks.waits_s("quiet", since=begun_at)
        attempts = Counter(one.attempt for one in list(tasks.began["storm"]))
        reasons = place.stores.database.rows(
            "SELECT count(*) FROM runs WHERE state = 'retrying' AND reason LIKE 'retry_budget%'"
        )
        over.set()
        trickle.join()
        _account(place, trickled)
    retried, first = attempts.total() - attempts[1], attempts[1]
    budget = 2 * PER_MINUTE + SHARE * first
    held = reasons[0][0]
    print(f"{first:,} failed together; {retried:,} retries in {STORM_S:g} s of about {budget:,.0f}; {held:,} held back")
    quiet, busy = told("a quiet namespace, before", before), told("a quiet namespace, meanwhile", after)
    ratio = (busy + TASK_S) / (quiet + TASK_S)
    print(f"{'p99 from trigger to end, meanwhile against before':52} {ratio:6.2f} x")
    assert retried <= 1.5 * budget, f"{retried} retries are more than the budget of {budget:.0f}"
    assert ratio < RATIO_MAX, f"the quiet namespace's p99 is {ratio:.1f} times what it was: {RATIO_MAX} is right"


def _account(place: Herd, trickled: JobKey) -> None:
    """Of every run, what became of it: when the storm is stopped, and when it is over."""
    place.until(lambda: states(place.stores, "quiet") == {"succeeded": place.triggered[trickled]})
    place.stop()
    place.accounted("quiet")
    found = place.accounted("storm")
    print("in the storm: " + ", ".join(f"{count:,} {state}" for state, count in sorted(found.items())))
    assert sum(found.values()) == RUNS, f"there are {sum(found.values())} runs of {RUNS}"
    assert found.keys() <= OPEN | {"failed"}, f"a run is neither open nor failed: {found}"
    spent = found.get("failed", 0)
    place.tasks.rules.clear()
    with place.later(LATER) as after:
        after.until(lambda: not states(after.stores, "storm").keys() & (OPEN | {"running"}))
        after.stop()
        ended = after.accounted("storm")
    assert ended.get("succeeded", 0) == RUNS - spent, f"not all that were open have succeeded: {ended}"
    assert ended.get("failed", 0) == spent, f"not all that had failed are still so: {ended}"
    print(f"after it, {RUNS - spent:,} succeeded once, and no run began more often than it says")


if __name__ == "__main__":
    main()
