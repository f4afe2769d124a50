"""Ten thousand jobs of one namespace are due at one instant, beside a namespace with a run now and then.

Compared within one run: how long the quiet namespace's runs take from their trigger to the end of their task, before
the instant and after it, while the spike lasts. Tasks take 50 ms on 32 workers. At the end nothing is lost or doubled:
each job has one run, of one attempt, with one effect. JOBS=500 makes a smaller spike.
"""

from __future__ import annotations

import os
import threading
from datetime import timedelta
from pathlib import Path

from bench.herd import Tasks, herd, states, told
from bench.throughput import LONG_BEFORE, ShiftedClock, put_jobs
from sweephand.clock import SystemClock

JOBS = int(os.environ.get("JOBS", "10000"))
WORKERS = 32
TASK_S = 0.05
QUIET = timedelta(seconds=12)
"""Before the spike, until its runs are planned."""
PLANNED = timedelta(seconds=6)
EVERY_S = 0.04
RATIO_MAX = 2.0


def main() -> None:
    due_at = SystemClock().now().replace(microsecond=0) + LONG_BEFORE
    tasks, over = Tasks(TASK_S), threading.Event()

    def prepare(file: Path) -> ShiftedClock:
        put_jobs(file, due_at, JOBS, "crowd")
        return ShiftedClock(due_at - QUIET - PLANNED)

    with herd(tasks, workers=WORKERS, prepare=prepare) as place:
        trickled = place.put("quiet", "job")
        trickle = place.trickle(trickled, every_s=EVERY_S, over=over)
        place.until(lambda: tasks.now() >= due_at - PLANNED)
        before = tasks.waits_s("quiet")
        place.until(lambda: len(tasks.began["crowd"]) >= JOBS)
        after = tasks.waits_s("quiet", since=due_at)
        over.set()
        trickle.join()
        owed = {"crowd": {"succeeded": JOBS}, "quiet": {"succeeded": place.triggered[trickled]}}
        place.until(lambda: all(states(place.stores, name) == due for name, due in owed.items()))
        place.stop()
        for name, due in owed.items():
            found = place.accounted(name)
            assert found == due, f"of {name}, {due} is right: {found}"
        jobs, attempts = place.stores.database.rows(
            "SELECT count(DISTINCT job), sum(attempt) FROM runs WHERE job >= 'crowd/' AND job < 'crowd0'"
        )[0]
    assert (jobs, attempts) == (JOBS, JOBS), f"{jobs} of {JOBS} jobs had a run, in {attempts} attempts"
    print(f"{f'{JOBS:,} jobs had one run, one attempt and one effect each, and so had every quiet run':52}")
    told(f"{JOBS:,} due at one instant", tasks.waits_s("crowd"))
    quiet, busy = told("a quiet namespace, before", before), told("a quiet namespace, meanwhile", after)
    ratio = (busy + TASK_S) / (quiet + TASK_S)
    print(f"{'p99 from trigger to end, meanwhile against before':52} {ratio:6.2f} x")
    assert ratio < RATIO_MAX, f"the quiet namespace's p99 is {ratio:.1f} times what it was: {RATIO_MAX} is right"


if __name__ == "__main__":
    main()
