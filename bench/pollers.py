"""A thousand workers poll one server over HTTP, each on its own connection, beside a namespace with a run now and then.

First a backlog: every run must be pulled and completed once, by whoever. Then they wait, and runs come at the peak that
is asked for, 36 a second (000-C2). Compared within one run: how long the other namespace's runs take from their trigger
to their start while the thousand poll, and before they came or after they went, whichever was worse.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import ssl
import threading
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from multiprocessing.connection import Connection
from time import monotonic, sleep
from typing import Any

import httpx

from bench.served import Client, Served, quantile, served

WORKERS = 1_000
PROCESSES = 2
BACKLOG = 3_000
PEAK_PER_S = 36
PEAK_S = 30.0
QUIET_S = 20.0
EVERY_S = 0.05
WAIT_S = 20
WITHIN_S = 180.0
RATIO_MAX = 2.0
CROWD, QUIET = "crowd", "quiet"


def main() -> None:
    with served() as server:
        crowd, quiet = _client(server, CROWD), _client(server, QUIET)
        crowd.post("/jobs", {"name": "job", "run": {"external": {}}})
        quiet.post("/jobs", {"name": "job", "run": {"command": ["true"]}})
        _trickle(server, lambda since: since > 2)  # what is done once is done
        before = _trickle(server, lambda since: since > QUIET_S)
        _trigger(server, BACKLOG, 0.0)
        pulling = Pulling(server)
        _await(lambda: pulling.done > 0, "the first run")
        begun = monotonic()
        backlog = _trickle(server, lambda _: pulling.done >= BACKLOG)
        per_second = BACKLOG / (monotonic() - begun)
        _await(lambda: len(_pages(crowd, "/workers")) >= WORKERS, "a thousand workers")
        waiting = _trickle(server, lambda since: since > QUIET_S)

        count = int(PEAK_PER_S * PEAK_S)
        triggered = threading.Thread(target=_trigger, args=(server, count, 1 / PEAK_PER_S))
        cpu_s, begun = server.cpu_s(), monotonic()
        triggered.start()
        peak = _trickle(server, lambda _: not triggered.is_alive())
        share = (server.cpu_s() - cpu_s) / (monotonic() - begun)
        _await(lambda: pulling.done >= BACKLOG + count, "all runs")
        pulled, troubles = pulling.end()
        after = _trickle(server, lambda since: since > QUIET_S)
        ended = Counter((run["state"], run["attempt"]) for run in _pages(crowd, "/jobs/job/runs"))

    print(f"{WORKERS:,} workers, a backlog of {BACKLOG:,} runs: {per_second:,.0f} a second")
    phases = {
        "before": before,
        "a backlog": backlog,
        "1,000 wait": waiting,
        f"{PEAK_PER_S} runs a second": peak,
        "afterwards": after,
    }
    for what, waits_s in phases.items():
        print(f"{f'a quiet namespace, {what}':45} {len(waits_s):5} runs   {_line(waits_s)}")
    ratio = quantile(peak, 0.99) / max(quantile(before, 0.99), quantile(after, 0.99))
    print(f"p99 from trigger to start, at the peak against quiet: {ratio:.2f} x; the server used {share:.0%} of a core")
    twice = pulled.total() - len(pulled)
    assert not twice, f"{twice} runs were pulled twice"
    assert len(pulled) == BACKLOG + count, f"{BACKLOG + count - len(pulled)} runs were lost"
    assert ended == {("succeeded", 1): BACKLOG + count}, f"not all have succeeded at once: {ended}"
    assert not troubles, f"workers were turned away: {troubles}"
    assert ratio < RATIO_MAX, f"the quiet namespace's p99 is {ratio:.1f} times what it was: {RATIO_MAX} is right"


class Pulling:
    """The workers, in processes of their own."""

    def __init__(self, server: Served) -> None:
        spawned = multiprocessing.get_context("spawn")
        self._over = spawned.Event()
        self._done = spawned.Value("i")
        self._heard: list[Connection] = []
        for number in range(PROCESSES):
            heard, says = spawned.Pipe(duplex=False)
            arguments = (server.port, server.token, number, self._over, self._done, says)
            spawned.Process(target=_pull, args=arguments, daemon=True).start()
            self._heard.append(heard)

    @property
    def done(self) -> int:
        """Runs completed so far."""
        return int(self._done.value)

    def end(self) -> tuple[Counter[str], Counter[object]]:
        """What each run was pulled, and what else than 200 workers heard."""
        self._over.set()
        pulled, troubles = Counter[str](), Counter[object]()
        for heard in self._heard:
            runs, others = heard.recv()
            pulled += runs
            troubles += others
        return pulled, troubles


def _pull(port: int, token: str, number: int, over: Any, done: Any, says: Connection) -> None:
    pulled, troubles = Counter[str](), Counter[object]()
    os.nice(10)  # they stand for other machines

    async def work() -> None:
        # A client each: the connections of one are looked through for every call.
        tls = ssl.create_default_context()
        workers = [
            asyncio.create_task(_work(_connected(port, token, tls), f"w{number}-{each}", pulled, done, troubles))
            for each in range(WORKERS // PROCESSES)
        ]
        await asyncio.to_thread(over.wait)
        for one in workers:
            one.cancel()
        await asyncio.gather(*workers, return_exceptions=True)

    asyncio.run(work())
    says.send((pulled, troubles))


def _connected(port: int, token: str, tls: ssl.SSLContext) -> httpx.AsyncClient:
    headers = {"Authorization": f"Bearer {token}", "X-Namespace": CROWD}
    url = f"http://127.0.0.1:{port}/api/v1"
    return httpx.AsyncClient(base_url=url, headers=headers, timeout=60, trust_env=False, verify=tls)


async def _work(http: httpx.AsyncClient, name: str, pulled: Counter[str], done: Any, troubles: Counter[object]) -> None:
    async with http:
        while True:
            try:
                answer = await http.post("/leases", json={"workerId": name, "waitSeconds": WAIT_S})
                answer.raise_for_status()
                for one in answer.json()["items"]:
                    pulled[one["runId"]] += 1
                    ended = await http.post(f"/leases/{one['lease']}/complete", json={"epoch": one["epoch"]})
                    ended.raise_for_status()
                    with done.get_lock():
                        done.value += 1
            except httpx.HTTPError as trouble:
                troubles[str(trouble) or type(trouble).__name__] += 1
                await asyncio.sleep(1)


def _client(server: Served, namespace: str) -> Client:
    server.client().put(f"/namespaces/{namespace}", {})
    return server.client(namespace)


def _trigger(server: Served, count: int, every_s: float) -> None:
    client, begun = server.client(CROWD), monotonic()
    for number in range(count):
        client.post("/jobs/job/trigger")
        sleep(max(0.0, begun + (number + 1) * every_s - monotonic()))


def _trickle(server: Served, is_over: Callable[[float], bool]) -> list[float]:
    """Seconds from trigger to start of the quiet namespace's runs, one now and then."""
    client, begun, asked = server.client(QUIET), monotonic(), dict[str, datetime]()
    while not is_over(monotonic() - begun):
        at = datetime.now(UTC)
        asked[client.post("/jobs/job/trigger")["runId"]] = at
        sleep(EVERY_S)
        assert monotonic() - begun < WITHIN_S, "it takes too long"
    started: dict[str, datetime] = {}

    def all_started() -> bool:
        for run in asked.keys() - started.keys():
            if at := client.get(f"/jobs/job/runs/{run}")["startedAt"]:
                started[run] = datetime.fromisoformat(at)
        return len(started) == len(asked)

    _await(all_started, "the quiet namespace's runs")
    return [(started[run] - at).total_seconds() for run, at in asked.items()]


def _pages(client: Client, path: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    cursor = ""
    while True:
        page = client.get(f"{path}?limit=1000{cursor}")
        found += page["items"]
        if not page["nextCursor"]:
            return found
        cursor = f"&cursor={page['nextCursor']}"


def _await(holds: Callable[[], bool], what: str) -> None:
    ends_at = monotonic() + WITHIN_S
    while not holds():
        assert monotonic() < ends_at, f"it takes too long: {what}"
        sleep(0.5)


def _line(waits_s: list[float]) -> str:
    return f"p50 {quantile(waits_s, 0.5) * 1000:6.1f} ms   p99 {quantile(waits_s, 0.99) * 1000:6.1f} ms"


if __name__ == "__main__":
    main()
