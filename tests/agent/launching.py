"""A place that launches agents as processes: the API on a file, served on a free port, on a clock that can be moved."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from sweephand.api.app import PUBLIC, Api
from sweephand.api.asked import Patience
from sweephand.calls import Call
from sweephand.clock import SystemClock, SystemDice
from sweephand.domain.ids import DEFAULT, RunKey
from sweephand.domain.run import Run
from sweephand.embedded import PACE, open_stores
from sweephand.engine.put import put
from sweephand.engine.trigger import trigger
from sweephand.local import Runtime
from sweephand.local.gateway import Gateway
from sweephand.local.server import App, Server, listen
from sweephand.messages import Elsewhere
from tests.local.waiting import until

BEAT_S: Final = 0.2
WITHIN_S: Final = 30.0


class MovedClock:
    """The real time, and a little more whenever a test says so."""

    def __init__(self) -> None:
        self._clock = SystemClock()
        self._ahead = timedelta(0)

    def now(self) -> datetime:
        return self._clock.now() + self._ahead

    def move(self, **parts: float) -> None:
        self._ahead += timedelta(**parts)


class Launching:
    """The target: starts an agent for what is launched, with the environment that ECS would give it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.url = ""
        self.calls: list[Call] = []
        self.agents: list[subprocess.Popen[bytes]] = []
        self.outputs: list[Path] = []

    def execute(self, call: Call) -> Elsewhere:
        assert call.lease is not None
        number = len(self.agents)
        told = {
            "SWEEPHAND_URL": self.url,
            "SWEEPHAND_LEASE": call.lease,
            "SWEEPHAND_EPOCH": str(call.run.epoch),
            "SWEEPHAND_WORK": str(self.folder / f"agent-{number}"),
            "SWEEPHAND_BEAT": str(BEAT_S),
        }
        printed = self.folder / f"agent-{number}.log"
        with printed.open("wb") as file:
            agent = subprocess.Popen(
                [sys.executable, "-m", "sweephand", "agent"],
                env={"PATH": os.environ["PATH"], "HOME": str(self.folder), **told},
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.calls.append(call)
        self.outputs.append(printed)
        self.agents.append(agent)
        return Elsewhere()


class Place:
    """Jobs are put and triggered here, and their agents come."""

    def __init__(self, folder: Path) -> None:
        self.clock = MovedClock()
        self.stores = open_stores(folder / "test.db", clock=self.clock)
        self.target = Launching(folder)
        pace = replace(PACE, launches=True, attempt_max=timedelta(seconds=1))
        self.runtime = Runtime(
            self.stores, target=self.target, clock=self.clock, dice=SystemDice(), pace=pace, workers=2
        )
        self.world = self.runtime.world
        self.api = Api(self.world)
        self.deaf = False
        """Whether the API answers that it is not available."""

    def authorize(self, event: Mapping[str, Any]) -> Mapping[str, Any]:
        return self.api.authorize(event)

    def handle(self, event: Mapping[str, Any], *, patience: Patience | None = None) -> Mapping[str, Any]:
        if self.deaf:
            return {"statusCode": 503, "headers": {}, "body": "{}"}
        return self.api.handle(event, patience=patience)

    def begin(self, run: dict[str, Any], **more: Any) -> RunKey:
        document = {"name": "job", "run": run, "timeout": "30m", **more}
        head = put(self.world, DEFAULT, document, actor="test", expected=None)
        return trigger(self.world, head.key).key

    def run(self, key: RunKey) -> Run:
        run = self.world.runs.get(key)
        assert run is not None
        return run

    def ended(self, key: RunKey) -> Run:
        until(lambda: self.run(key).is_terminal, within_s=WITHIN_S, what=f"{key} ends")
        return self.run(key)

    def launched(self, number: int) -> subprocess.Popen[bytes]:
        """The agent that was launched as the so-and-so-many-th, from 1 on."""
        until(lambda: len(self.target.agents) >= number, within_s=WITHIN_S, what=f"agent {number} is launched")
        return self.target.agents[number - 1]

    def printed(self, number: int = 1) -> str:
        return self.target.outputs[number - 1].read_text()


@contextmanager
def launching(folder: Path) -> Iterator[Place]:
    """The place, with everything at work; agents that are left are ended."""
    place, ready = Place(folder), threading.Event()
    with listen(0) as listening:
        place.target.url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        dice = SystemDice()
        gateway = Gateway(place, public=PUBLIC, clock=place.clock, dice=dice)
        server = Server(App(gateway, dice), ready=ready.set)
        thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
        thread.start()
        assert ready.wait(WITHIN_S)
        try:
            with place.runtime:
                yield place
        finally:
            for agent in place.target.agents:
                if agent.poll() is None:
                    os.killpg(agent.pid, signal.SIGKILL)
                agent.wait(WITHIN_S)
            server.should_exit = True
            thread.join(WITHIN_S)
            place.stores.close()
