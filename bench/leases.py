"""Ten thousand external leases held at once over HTTP, each kept alive every 30 seconds in batches of a hundred.

None may be lost: at the end every lease is completed under its first epoch. HOLD_S=60 shortens the five minutes, and
LEASES=1000 takes fewer. What the server's process needs meanwhile is printed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from time import monotonic
from typing import Any

from bench.served import Client, Served, quantile, served, wait_until

LEASES = int(os.environ.get("LEASES", "10000"))
HOLD_S = float(os.environ.get("HOLD_S", "300"))
EVERY_S = 30.0
BATCH = 100
CONNECTIONS = 8
QUEUE = "held"


def main() -> None:
    with served() as server:
        _trigger(server)
        held = _lease(server)
        assert len({one["runId"] for one in held}) == LEASES, "a run was leased twice, or not at all"
        cpu_s, begun, took_s = server.cpu_s(), monotonic(), list[float]()
        # A lease lasts for a minute: the first were taken some time ago.
        while True:
            round_begun = monotonic()
            took_s.append(_beat(server, held))
            if monotonic() - begun + EVERY_S > HOLD_S:
                break
            wait_until(round_begun + EVERY_S)
        seconds = monotonic() - begun
        share = (server.cpu_s() - cpu_s) / seconds
        print(
            f"{LEASES:,} leases held for {seconds:.0f} s: {len(took_s)} rounds of beats, {max(took_s):.1f} s at most "
            f"each; the server used {share:.0%} of a core and {server.rss_mb():.0f} MB"
        )
        _complete(server, held)
        assert max(took_s) < EVERY_S, f"a round of heartbeats took {max(took_s):.0f} s: {EVERY_S:g} s are right"


def _parts(
    server: Served, what: str, items: Sequence[Any], work: Callable[[Client, Sequence[Any]], list[float]]
) -> None:
    """Some of the items on each connection; prints how fast that went."""
    begun = monotonic()
    with ThreadPoolExecutor(CONNECTIONS) as threads:
        parts = [items[part::CONNECTIONS] for part in range(CONNECTIONS)]
        took_s = [one for found in threads.map(lambda part: work(server.client(), part), parts) for one in found]
    per_second = len(items) / (monotonic() - begun)
    print(f"{what:10} {len(items):6}: {per_second:6.0f} per second, p99 {quantile(took_s, 0.99):.2f} s a call")


def _timed(call: Callable[[], Any], took_s: list[float]) -> Any:
    begun = monotonic()
    answer = call()
    took_s.append(monotonic() - begun)
    return answer


def _trigger(server: Served) -> None:
    server.client().post("/jobs", {"name": "held", "run": {"external": {"queue": QUEUE}}, "timeout": "1h"})

    def work(client: Client, numbers: Sequence[int]) -> list[float]:
        took_s: list[float] = []
        for _ in numbers:
            _timed(lambda: client.post("/jobs/held/trigger"), took_s)
        return took_s

    _parts(server, "triggered", range(LEASES), work)


def _lease(server: Served) -> list[dict[str, Any]]:
    """All that is on offer, a hundred at a time, with heartbeats meanwhile if that takes long."""
    client, held, begun, beaten = server.client(), list[dict[str, Any]](), monotonic(), monotonic()
    while len(held) < LEASES:
        body = {"workerId": "bench", "labels": [QUEUE], "max": BATCH, "waitSeconds": 5}
        held += client.post("/leases", body)["items"]
        if monotonic() - beaten > EVERY_S / 2:
            _beat(server, held)
            beaten = monotonic()
    print(f"{'leased':10} {len(held):6}: {len(held) / (monotonic() - begun):6.0f} per second, {BATCH} a call")
    return held


def _beat(server: Served, held: Sequence[dict[str, Any]]) -> float:
    """How long it took to keep all of them; a lease that cannot be kept is lost."""
    batches = [held[first : first + BATCH] for first in range(0, len(held), BATCH)]
    begun = monotonic()

    def beat(part: int) -> None:
        client = server.client()
        for batch in batches[part::CONNECTIONS]:
            leases = [{"lease": one["lease"], "epoch": one["epoch"]} for one in batch]
            lost = [
                one["error"] for one in client.post("/leases/heartbeat", {"leases": leases})["items"] if one["error"]
            ]
            assert not lost, f"{len(lost)} leases of a batch were lost: {lost[0]}"

    with ThreadPoolExecutor(CONNECTIONS) as threads:
        list(threads.map(beat, range(CONNECTIONS)))
    return monotonic() - begun


def _complete(server: Served, held: Sequence[dict[str, Any]]) -> None:
    def work(client: Client, leases: Sequence[dict[str, Any]]) -> list[float]:
        took_s: list[float] = []
        for one in leases:
            path = f"/leases/{one['lease']}/complete"
            ended = _timed(lambda path=path, one=one: client.post(path, {"epoch": one["epoch"]}), took_s)  # type: ignore[misc]
            assert (ended["state"], ended["attempt"]) == ("succeeded", 1), f"a lease was lost: {ended}"
        return took_s

    _parts(server, "completed", held, work)


if __name__ == "__main__":
    main()
