"""How soon `sweephand run logs --follow` shows a line after its task has printed it; real processes, over HTTP.

The task prints the time, now and then; whoever follows compares it with the time of arrival.
"""

from __future__ import annotations

import os
import subprocess
import sys
from time import time

from bench.served import quantile, served

LINES = 100
EVERY_S = 0.1
SEEN_WITHIN_S = 0.5
SOURCE = f"import time\nfor _ in range({LINES}): print(time.time(), flush=True); time.sleep({EVERY_S})"


def main() -> None:
    with served() as server:
        client = server.client()
        client.post("/jobs", {"name": "speaks", "run": {"command": [sys.executable, "-c", SOURCE]}, "timeout": "5m"})
        run = client.post("/jobs/speaks/trigger")["runId"]
        environ = {
            **os.environ,
            "SWEEPHAND_URL": f"http://127.0.0.1:{server.port}",
            "SWEEPHAND_TOKEN": server.token,
            "PYTHONUNBUFFERED": "1",
        }
        words = [sys.executable, "-m", "sweephand", "run", "logs", "speaks", run, "--follow"]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environ) as following:
            assert following.stdout is not None
            begun = time()
            arrived = [(float(line), time()) for line in following.stdout]
    # What was printed before anybody followed comes with the first answer.
    late_s = [at - printed for printed, at in arrived if printed > begun + 2]
    p50, p99 = quantile(late_s, 0.5), quantile(late_s, 0.99)
    print(f"{len(arrived)} lines followed: seen {p50:.2f} s after their print at p50, {p99:.2f} s at p99")
    assert len(arrived) == LINES, f"{len(arrived)} of {LINES} lines arrived"
    assert p99 < SEEN_WITHIN_S, f"a line is seen after {p99:.2f} s: {SEEN_WITHIN_S} s are right"


if __name__ == "__main__":
    main()
