"""A real `sweephand up` to measure, and a client that costs little beside it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection, RemoteDisconnected
from pathlib import Path
from time import monotonic, sleep
from typing import Any

ANSWERS_WITHIN_S = 60.0
STOPS_WITHIN_S = 60.0
POLL_S = 0.05


@dataclass(frozen=True)
class Served:
    """A server under way."""

    port: int
    token: str
    pid: int

    def client(self, namespace: str = "default") -> Client:
        return Client(self.port, self.token, namespace)

    def rss_mb(self) -> float:
        """The memory that its process holds."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        found = re.search(r"VmRSS:\s+(\d+) kB", status)
        return int(found[1]) / 1024 if found else 0.0

    def cpu_s(self) -> float:
        """The processor time that it has used."""
        user, system = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


class Client:
    """One kept connection."""

    def __init__(self, port: int, token: str, namespace: str) -> None:
        self._connection = HTTPConnection("127.0.0.1", port, timeout=ANSWERS_WITHIN_S)
        self._headers = {
            "Authorization": f"Bearer {token}",
            "Content-Type": "application/json",
            "X-Namespace": namespace,
        }

    def ask(self, method: str, path: str, body: object = None) -> tuple[int, bytes]:
        """The status and the body, unread."""
        try:
            return self._ask(method, path, body)
        except RemoteDisconnected:  # it was idle for too long: the server let go of it
            self._connection.close()
            return self._ask(method, path, body)

    def _ask(self, method: str, path: str, body: object) -> tuple[int, bytes]:
        text = json.dumps(body) if body is not None else None
        self._connection.request(method, f"/api/v1{path}", body=text, headers=self._headers)
        answer = self._connection.getresponse()
        return answer.status, answer.read()

    def get(self, path: str) -> Any:
        return self._told("GET", path)

    def post(self, path: str, body: object = None) -> Any:
        return self._told("POST", path, body)

    def put(self, path: str, body: object = None) -> Any:
        return self._told("PUT", path, body)

    def _told(self, method: str, path: str, body: object = None) -> Any:
        status, text = self.ask(method, path, body)
        if not 200 <= status < 300:
            raise RuntimeError(f"{method} {path}: {status} {text[:500]!r}")
        return json.loads(text) if text else None


@contextmanager
def served(*options: str) -> Iterator[Served]:
    """A server on a folder of its own, until the end of the block."""
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        command = [sys.executable, "-m", "sweephand", "up", "--port", "0", "--data", str(data), "--no-examples"]
        process = subprocess.Popen([*command, *options], stdout=subprocess.PIPE, text=True)
        try:
            yield Served(_port(process), (data / "admin.token").read_text().strip(), process.pid)
        finally:
            process.terminate()
            process.wait(STOPS_WITHIN_S)


def _port(process: subprocess.Popen[str]) -> int:
    assert process.stdout is not None
    for line in process.stdout:
        found = re.match(r"Sweephand is up at http://127\.0\.0\.1:(\d+)", line)
        if found:
            return int(found[1])
    raise RuntimeError("The server ended before it was up.")


def quantile(values: Sequence[float], share: float) -> float:
    """The value below which this share lies."""
    ordered = sorted(values)
    return ordered[min(int(len(ordered) * share), len(ordered) - 1)]


def wait_until(deadline_s: float) -> None:
    """Until a moment of the monotonic clock."""
    while (left := deadline_s - monotonic()) > 0:
        sleep(min(left, 1.0))
