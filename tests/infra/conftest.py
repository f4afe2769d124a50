"""The assembly of the default options: made once, by whichever process comes first."""

from __future__ import annotations

import fcntl
from pathlib import Path

import pytest

from tests.infra.assembly import Assembly, synthesized


@pytest.fixture(scope="session")
def assembly(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Assembly:
    own = tmp_path_factory.getbasetemp()
    shared = own if worker_id == "master" else own.parent
    return Assembly(_made_once(shared / "assembly"))


def _made_once(folder: Path) -> Path:
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "manifest.json").is_file():
            done = synthesized(folder)
            assert done.returncode == 0, done.stdout + done.stderr
    return folder
