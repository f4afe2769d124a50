"""Two places where containers and long tasks run: on a file, as processes, and on AWS in this process, with agents."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from sweephand.api.app import PUBLIC
from sweephand.clock import SystemDice
from sweephand.domain.ids import DEFAULT, RunKey
from sweephand.domain.run import Run
from sweephand.embedded import open_stores
from sweephand.engine.cancel import cancel
from sweephand.engine.put import put
from sweephand.engine.trigger import trigger
from sweephand.local import Runtime
from sweephand.local.cloud import Deployment, Front
from sweephand.local.cloud.account import Around, directly
from sweephand.local.cloud.containers import Containers
from sweephand.local.cloud.running import Running
from sweephand.local.gateway import Gateway
from sweephand.local.server import App, Server, listen
from sweephand.logs import LogKey
from sweephand.operators import Logging, Operators, containers_here
from sweephand.ports import World
from sweephand.settings import Settings
from tests.agent.launching import MovedClock
from tests.local.waiting import until

ROOT: Final = Path(__file__).resolve().parents[2]
WITHIN_S: Final = 180.0


class Place:
    """Where jobs are put and triggered."""

    def __init__(self, world: World, clock: MovedClock, deployment: Deployment | None = None) -> None:
        self.world = world
        self.clock = clock
        self.deployment = deployment

    def begin(self, run: dict[str, Any], **more: Any) -> RunKey:
        document = {"name": "job", "run": run, "timeout": "20m", **more}
        head = put(self.world, DEFAULT, document, actor="test", expected=None)
        return trigger(self.world, head.key).key

    def run(self, key: RunKey) -> Run:
        run = self.world.runs.get(key)
        assert run is not None
        return run

    def ended(self, key: RunKey) -> Run:
        until(lambda: self.run(key).is_terminal, within_s=WITHIN_S, what=f"{key} ends")
        return self.run(key)

    def cancel(self, key: RunKey) -> None:
        cancel(self.world, key, actor="ann")

    def lines(self, key: RunKey, attempt: int = 1) -> list[tuple[str, str]]:
        log = LogKey(key, "main", attempt)
        until(lambda: self.world.logs.read(log, after=None, limit=100).closed, within_s=WITHIN_S, what="the log ends")
        page = self.world.logs.read(log, after=None, limit=100)
        return [(str(line.stream), line.text) for line in page.lines]

    def files(self, key: RunKey, attempt: int = 1) -> dict[str, int]:
        return {one.name: one.size for one in self.world.artifacts.listed(LogKey(key, "main", attempt))}


@contextmanager
def on_sqlite(folder: Path) -> Iterator[Place]:
    clock = MovedClock()
    with closing(open_stores(folder / "test.db", clock=clock)) as stores:
        operators = Operators(
            folder / "work",
            logging=Logging(stores.logs.open),
            keep=stores.artifacts.keep,
            clock=clock,
            containers=containers_here(os.environ, as_processes=True),
        )
        runtime = Runtime(stores, target=operators, clock=clock, dice=SystemDice(), workers=2)
        with runtime:
            yield Place(runtime.world, clock)


@contextmanager
def on_moto(folder: Path, *, around: Around = directly) -> Iterator[Place]:
    clock, dice, ready = MovedClock(), SystemDice(), threading.Event()
    with listen(0) as listening, closing(Containers(beat="0.3")) as containers:
        settings = Settings(shards=1, url=f"http://127.0.0.1:{listening.getsockname()[1]}", container_images="team/*")
        deployment = Deployment(
            ROOT, tmp=folder, clock=clock, dice=dice, settings=settings, around=around, containers=containers
        )
        with deployment:
            gateway = Gateway(Front(deployment), public=PUBLIC, clock=clock, dice=dice)
            server = Server(App(gateway, dice), ready=ready.set)
            thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
            thread.start()
            assert ready.wait(WITHIN_S)
            try:
                with Running(deployment, width=2):
                    yield _OnMoto(deployment.world, clock, deployment)
            finally:
                server.should_exit = True
                thread.join(timedelta(seconds=20).total_seconds())


class _OnMoto(Place):
    """People cancel by the API, whose function knows what is launched."""

    def cancel(self, key: RunKey) -> None:
        assert self.deployment is not None
        from tests.api.client import Callers

        admin = Callers(self.world, Front(self.deployment)).platform()
        admin.post(f"/jobs/{key.job.name}/runs/{key.run_id}/cancel").expect(200)


PLACES: Final = {"sqlite": on_sqlite, "moto": on_moto}
