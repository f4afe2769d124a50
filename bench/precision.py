"""How punctual a served scheduler is: 20 jobs of every second for a minute, and triggers by hand.

The task is `date`, which says itself when it started: the skew is that moment minus the fire time, with the start of
the process in it. The ledger must show each of the 1,200 fires as fired once.
"""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import Any

from bench.served import POLL_S, Client, quantile, served, wait_until

JOBS = 20
SECONDS = 60
TRIGGERS = 200
STARTED = {"command": ["date", "+%s.%N"]}
ENDED = {"succeeded", "failed", "cancelled", "skipped"}
SKEW_MAX_S = 0.5
TRIGGER_MEDIAN_MAX_S = 0.1


def main() -> None:
    with served() as server:
        client = server.client()
        _fire_every_second(client)
        _trigger_by_hand(client)


def _fire_every_second(client: Client) -> None:
    start = (datetime.now(UTC) + timedelta(seconds=8)).replace(microsecond=0)
    end = start + timedelta(seconds=SECONDS)
    for number in range(JOBS):
        schedule = {"cron": "* * * * * *", "startAt": _text(start), "endAt": _text(end)}
        client.post("/jobs", {"name": f"tick-{number:02d}", "schedule": schedule, "run": STARTED})
    wait_until(monotonic() + (end - datetime.now(UTC)).total_seconds() + 5)
    statuses: Counter[str] = Counter()
    claims: list[float] = []
    starts: list[float] = []
    for number in range(JOBS):
        rows = client.get(f"/jobs/tick-{number:02d}/ledger?from={_text(start)}&to={_text(end)}")["items"]
        statuses.update(row["status"] for row in rows)
        claims += [row["skewMs"] / 1000 for row in rows if row["skewMs"] is not None]
        starts += [_skew(run) for run in client.get(f"/jobs/tick-{number:02d}/runs?limit=1000")["items"]]
    print(f"{JOBS} jobs, every second for {SECONDS} s: {dict(statuses)} of {JOBS * SECONDS} in the ledger")
    print(f"claimed: p50 {quantile(claims, 0.5) * 1000:6.0f} ms  p99 {quantile(claims, 0.99) * 1000:6.0f} ms")
    print(f"started: p50 {quantile(starts, 0.5) * 1000:6.0f} ms  p99 {quantile(starts, 0.99) * 1000:6.0f} ms")
    assert statuses == Counter(fired=JOBS * SECONDS), statuses
    assert quantile(starts, 0.99) < SKEW_MAX_S, "p99 skew"


def _trigger_by_hand(client: Client) -> None:
    client.post("/jobs", {"name": "by-hand", "run": STARTED})
    waits = []
    for _ in range(TRIGGERS):
        asked_at = datetime.now(UTC).timestamp()
        run_id = client.post("/jobs/by-hand/trigger")["runId"]
        waits.append(_started(_ended(client, run_id)) - asked_at)
    p50, p99 = quantile(waits, 0.5), quantile(waits, 0.99)
    print(f"trigger to start: p50 {p50 * 1000:.0f} ms  p99 {p99 * 1000:.0f} ms  ({TRIGGERS} triggers)")
    assert p50 < TRIGGER_MEDIAN_MAX_S, "median of triggers"


def _ended(client: Client, run_id: str) -> Any:
    while True:
        run = client.get(f"/jobs/by-hand/runs/{run_id}")
        if run["state"] in ENDED:
            return run
        wait_until(monotonic() + POLL_S)


def _started(run: Any) -> float:
    """When the task says that it started."""
    return float(run["output"]["stdout"])


def _skew(run: Any) -> float:
    return _started(run) - datetime.fromisoformat(run["fireAt"]).timestamp()


def _text(at: datetime) -> str:
    return at.isoformat().replace("+00:00", "Z")
