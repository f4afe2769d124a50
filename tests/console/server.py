"""A real `sweephand up`, and its API for what a test prepares."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx


@dataclass(frozen=True)
class Server:
    """Where it is, and who may do everything there."""

    url: str
    token: str = field(repr=False)

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

    def token_of(self, role: str) -> str:
        token: str = self.call("POST", "/tokens", {"role": role, "name": f"a {role}"})["token"]
        return token


@contextmanager
def served(folder: Path) -> Iterator[Server]:
    """One on a free port, with its data in a folder."""
    options = ["--port", "0", "--data", str(folder / "data"), "--no-examples"]
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
            yield Server(first.split()[-1], (folder / "data" / "admin.token").read_text().strip())
        finally:
            process.terminate()
            process.communicate(timeout=60)
