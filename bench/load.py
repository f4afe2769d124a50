"""What a served scheduler stands with 10,000 jobs stored: reads, triggers, and ten minutes of both.

The load comes from another process on the same cores, so that figures are low; what counts is that they do not depend
on how many jobs are stored, and that memory stays flat. MINUTES=1 shortens the last part.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from random import Random
from statistics import mean
from threading import Event
from time import monotonic

from bench.served import Served, quantile, served, wait_until

FEW = 100
JOBS = 10_000
CONNECTIONS = 8
CALLS = 2_000
MINUTES = float(os.environ.get("MINUTES", "10"))
SAMPLE_S = 5.0
GROWTH_MAX = 0.05
PAUSE_S = 0.02
"""Between two calls of one connection under mixed load: many, but not all that it stands."""


def main() -> None:
    with served() as server:
        _store(server, 0, FEW)
        few = [_measure(server, name, FEW) for name in ("read", "trigger")]
        _store(server, FEW, JOBS)
        many = [_measure(server, name, JOBS) for name in ("read", "trigger")]
        for name, before, after in zip(("read", "trigger"), few, many, strict=True):
            print(f"{name}: {JOBS} jobs stored against {FEW}: {after / before:.2f} of the calls per second")
        _mixed(server)


def _store(server: Served, first: int, last: int) -> None:
    def put(part: int) -> None:
        client = server.client()
        for number in range(first + part, last, CONNECTIONS):
            schedule = {"cron": f"{number % 60} {number % 24} 1 1 *"}
            client.post("/jobs", {"name": _name(number), "schedule": schedule, "run": {"command": ["true"]}})

    begun = monotonic()
    with ThreadPoolExecutor(CONNECTIONS) as threads:
        list(threads.map(put, range(CONNECTIONS)))
    print(f"created {last - first} jobs: {(last - first) / (monotonic() - begun):.0f} per second")


def _measure(server: Served, name: str, stored: int) -> float:
    """Calls per second over a few connections; prints them with their latency."""

    def work(part: int) -> list[float]:
        client, chance, took = server.client(), Random(part), []
        for _ in range(CALLS // CONNECTIONS):
            job = _name(chance.randrange(stored))
            begun = monotonic()
            if name == "read":
                client.get(f"/jobs/{job}")
            else:
                client.post(f"/jobs/{job}/trigger")
            took.append(monotonic() - begun)
        return took

    begun = monotonic()
    with ThreadPoolExecutor(CONNECTIONS) as threads:
        took = [one for part in threads.map(work, range(CONNECTIONS)) for one in part]
    per_second = len(took) / (monotonic() - begun)
    p50, p99 = quantile(took, 0.5) * 1000, quantile(took, 0.99) * 1000
    print(f"{name:8} {stored:6} jobs stored: {per_second:6.0f} per second, p50 {p50:.1f} ms, p99 {p99:.1f} ms")
    return per_second


def _mixed(server: Served) -> None:
    """Reads, lists, triggers and edits for a while; memory is looked at as it goes."""
    ending = Event()

    def work(part: int) -> int:
        client, chance = server.client(), Random(part)
        for number in count():
            if ending.wait(PAUSE_S):
                return number
            job = _name(chance.randrange(JOBS))
            match number % 10:
                case 0 | 1:
                    client.post(f"/jobs/{job}/trigger")
                case 2:
                    client.get("/jobs?limit=20")
                case 3:
                    client.get("/runs?limit=20")
                case 4:
                    client.ask("POST", "/jobs", {"name": job, "command": "true"})  # it is there: a refusal
                case _:
                    client.get(f"/jobs/{job}")
        return 0

    samples: list[float] = []
    with ThreadPoolExecutor(CONNECTIONS) as threads:
        working = [threads.submit(work, part) for part in range(CONNECTIONS)]
        ends_at = monotonic() + MINUTES * 60
        while monotonic() < ends_at:
            wait_until(min(monotonic() + SAMPLE_S, ends_at))
            samples.append(server.rss_mb())
        ending.set()
        calls = sum(one.result() for one in working)
    half = samples[len(samples) // 2 :]
    edge = max(len(half) // 10, 1)
    before, after = mean(half[:edge]), mean(half[-edge:])
    print(
        f"mixed load for {MINUTES:g} min: {calls} calls, {calls / MINUTES / 60:.0f} per second; memory "
        f"{samples[0]:.1f} MB at first, {before:.1f} half way, {after:.1f} at the end: {after / before - 1:+.1%}"
    )
    assert after / before - 1 < GROWTH_MAX, "memory grows"


def _name(number: int) -> str:
    return f"job-{number:05d}"
