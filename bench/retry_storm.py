"""Five thousand runs of one namespace fail together and are retried, beside a namespace with a run now and then.

Compared within one run: how long the quiet namespace's runs take from their trigger to the end of their task, before
the storm and for half a minute of it. Tasks take 50 ms on 32 workers.
"""

from __future__ import annotations

import threading
from collections import Counter
from time import sleep

from bench.herd import Tasks, herd, told
from sweephand.calls import Call, Outcome
from sweephand.clock import SystemClock
from sweephand.domain.budget import PER_MINUTE, SHARE
from sweephand.domain.retry import Failure

RUNS = 5_000
WORKERS = 32
TASK_S = 0.05
QUIET_S = 10.0
STORM_S = 30.0
EVERY_S = 0.04
RATIO_MAX = 2.0
RETRY = {"attempts": 10, "backoff": "exponential", "delay": "2s", "maxDelay": "10s"}


def fails(_call: Call) -> Outcome:
    return Failure("Down", "the database is down")


def main() -> None:
    tasks, over = Tasks(TASK_S, rules={"storm": fails}), threading.Event()
    with herd(tasks, workers=WORKERS) as place:
        trickle = place.trickle(place.put("quiet", "job"), every_s=EVERY_S, over=over)
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
    retried, first = attempts.total() - attempts[1], attempts[1]
    budget = 2 * PER_MINUTE + SHARE * first
    held = reasons[0][0]
    print(f"{first:,} failed together; {retried:,} retries in {STORM_S:g} s of about {budget:,.0f}; {held:,} held back")
    quiet, busy = told("a quiet namespace, before", before), told("a quiet namespace, meanwhile", after)
    ratio = (busy + TASK_S) / (quiet + TASK_S)
    print(f"{'p99 from trigger to end, meanwhile against before':52} {ratio:6.2f} x")
    assert retried <= 1.5 * budget, f"{retried} retries are more than the budget of {budget:.0f}"
    assert ratio < RATIO_MAX, f"the quiet namespace's p99 is {ratio:.1f} times what it was: {RATIO_MAX} is right"


if __name__ == "__main__":
    main()
