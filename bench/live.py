"""How soon a change of a run is heard by those who listen: 50 connections, jobs of every second; a real process.

A change says when it was made, and the clock of this machine is the server's too.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from websockets.asyncio.client import ClientConnection, connect

from bench.served import Served, quantile, served

CONNECTIONS = 50
JOBS = 10
SECONDS = 30
HEARS_WITHIN_S = 30.0
HEARD_WITHIN_S = 0.5


def main() -> None:
    with served() as server:
        client = server.client()
        start = (datetime.now(UTC) + timedelta(seconds=8)).replace(microsecond=0)
        end = start + timedelta(seconds=SECONDS)
        for number in range(JOBS):
            schedule = {"cron": "* * * * * *", "startAt": start.isoformat(), "endAt": end.isoformat()}
            client.post("/jobs", {"name": f"tick-{number}", "schedule": schedule, "run": {"command": ["true"]}})
        idle_s, at = server.cpu_s(), datetime.now(UTC)
        heard = asyncio.run(_hear(server))
        cores = (server.cpu_s() - idle_s) / (datetime.now(UTC) - at).total_seconds()
    late_s = [late for _, late in heard]
    p50, p99 = quantile(late_s, 0.5), quantile(late_s, 0.99)
    print(
        f"{CONNECTIONS} connections, {JOBS * SECONDS} runs in {SECONDS} s: {len(heard)} changes heard,"
        f" p50 {p50 * 1000:.0f} ms  p99 {p99 * 1000:.0f} ms after they were made; {cores:.2f} cores"
    )
    assert p99 < HEARD_WITHIN_S, f"a change is heard after {p99:.2f} s: {HEARD_WITHIN_S} s are right"


async def _hear(server: Served) -> Sequence[tuple[str, float]]:
    """What all connections heard, and how late; each hears of the end of every run."""
    heard = await asyncio.gather(*(_listen(server) for _ in range(CONNECTIONS)))
    return [one for each in heard for one in each]


async def _listen(server: Served) -> list[tuple[str, float]]:
    ended: set[str] = set()
    heard = []
    async with connect(f"ws://127.0.0.1:{server.port}/live", compression=None) as connection:
        await connection.send(json.dumps({"token": server.token}))
        await _next(connection)
        await connection.send(json.dumps({"subscribe": ["runs"]}))
        while len(ended) < JOBS * SECONDS:
            message = await _next(connection)
            now = datetime.now(UTC)
            for change in message.get("changes", ()):
                heard.append((change["state"], (now - datetime.fromisoformat(change["at"])).total_seconds()))
                if change["state"] == "succeeded":
                    ended.add(f"{change['jobId']}/{change['runId']}")
    return heard


async def _next(connection: ClientConnection) -> Any:
    async with asyncio.timeout(HEARS_WITHIN_S):
        return json.loads(await connection.recv())


if __name__ == "__main__":
    main()
