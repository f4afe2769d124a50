"""A home and a folder of one's own for every test: nobody's tokens, nobody's server."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where `~` is; the test also runs in it."""
    for name in [name for name in os.environ if name.startswith("SWEEPHAND_") and name != "SWEEPHAND_SOAK"]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@dataclass(frozen=True)
class Server:
    """A real `sweephand up`."""

    url: str
    token: str = field(repr=False)


@pytest.fixture(scope="module", params=["sqlite", "moto"])
def up(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server of each engine for a module's tests, on a free port and in a folder of its own."""
    folder = tmp_path_factory.mktemp("up")
    options = ["--engine", request.param, "--port", "0", "--data", str(folder / "data"), "--no-examples"]
    command = [sys.executable, "-m", "sweephand", "up", *options]
    log = folder / "log"
    with (
        log.open("w") as errors,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, cwd=folder) as process,
    ):
        assert process.stdout is not None
        first = process.stdout.readline()
        try:
            assert first.startswith("Sweephand is up at http://127.0.0.1:"), first + log.read_text()
            yield Server(first.split()[-1], (folder / "data" / "admin.token").read_text().strip())
        finally:
            process.terminate()
            process.communicate(timeout=60)


@pytest.fixture
def server(up: Server, home: Path, monkeypatch: pytest.MonkeyPatch) -> Server:
    """The module's server, which commands find by the environment."""
    monkeypatch.setenv("SWEEPHAND_URL", up.url)
    monkeypatch.setenv("SWEEPHAND_TOKEN", up.token)
    return up
