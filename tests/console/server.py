"""A real `sweephand up`, and its API for what a test prepares."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event
from typing import Any, Final

import httpx

COMES_WITHIN_S: Final = 60
LOOKS_EVERY_S: Final = 0.1


@dataclass(frozen=True)
class Server:
    """Where it is, and who may do everything there."""

    url: str
    token: str = field(repr=False)
    jobs: Path
    """The folder that it scans for job files."""

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        given = {
            "Authorization": f"Bearer {self.token}",
            **{name.replace("_", "-"): one for name, one in headers.items()},
        }
        answer = httpx.request(method, f"{self.url}/api/v1{path}", json=body, headers=given, timeout=30)
        assert answer.is_success, f"{method} {path}: {answer.status_code} {answer.text}"
        return answer.json() if answer.content else None

    def put(self, **definition: Any) -> str:
        """A job; its name."""
        self.call("PUT", f"/jobs/{definition['name']}", definition, If_None_Match="*")
        name: str = definition["name"]
        return name

    def until(self, path: str, holds: Callable[[Any], bool]) -> Any:
        """What is there, once something holds for it."""
        found = None
        for _ in range(round(COMES_WITHIN_S / LOOKS_EVERY_S)):
            found = self.call("GET", path)
            if holds(found):
                return found
            Event().wait(LOOKS_EVERY_S)
        raise AssertionError(f"{path} stayed as it is: {found}")

    def ended(self, run: str, state: str) -> None:
        self.until(run, lambda found: found["state"] == state)

    def asks(self, run: str, task: str) -> None:
        """Once a task waits for somebody's word."""
        asking = {"id": task, "reason": "approval"}
        self.until(run, lambda found: any(_has(one, asking) for one in found["tasks"]))

    def token_of(self, role: str) -> str:
        token: str = self.call("POST", "/tokens", {"role": role, "name": f"a {role}"})["token"]
        return token


def _has(one: dict[str, Any], fields: dict[str, str]) -> bool:
    return all(str(one[name]).split(":")[0] == text for name, text in fields.items())


@contextmanager
def served(folder: Path) -> Iterator[Server]:
    """One on a free port, with its data in a folder."""
    jobs = folder / "jobs"
    jobs.mkdir()
    options = ["--port", "0", "--data", str(folder / "data"), "--jobs", str(jobs), "--no-examples"]
    log = folder / "log"
    environ = {name: value for name, value in os.environ.items() if not name.startswith("SWEEPHAND_")}
    with (
        log.open("w") as errors,
        subprocess.Popen(
            [sys.executable, "-m", "sweephand", "up", *options],
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            cwd=folder,
            env=environ,
        ) as process,
    ):
        assert process.stdout is not None
        first = process.stdout.readline()
        try:
            assert first.startswith("Sweephand is up at http://127.0.0.1:"), first + log.read_text()
            yield Server(first.split()[-1], (folder / "data" / "admin.token").read_text().strip(), jobs)
        finally:
            process.terminate()
            process.communicate(timeout=60)
