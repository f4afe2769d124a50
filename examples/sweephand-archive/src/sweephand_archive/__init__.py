"""An operator that packs folders, and a hook that keeps a journal: an example of what a package can bring."""

from __future__ import annotations

import json
import os
import tarfile
import threading
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct

from sweephand.operators import Attempt, Failure, FailureClass, Outcome, Skipped, Succeeded


class Archive:
    """`archive: {folder, into, keep}` packs a folder into a file of the run's name, and keeps the newest few."""

    class Spec(Struct, kw_only=True):
        """What a task says."""

        folder: str
        into: str
        keep: Annotated[int, Meta(ge=1, le=1000)] = 7

    def execute(self, attempt: Attempt) -> Outcome:
        """Pack it. A repeated attempt writes the same file, so nothing is packed twice."""
        options = attempt.options(self.Spec)
        folder, into = Path(options.folder), Path(options.into)
        if not folder.is_dir():
            return Failure("NotFound", f"There is no folder '{folder}' here.", FailureClass.PERMANENT)
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        if not files:
            return Skipped(f"'{folder}' is empty")
        told = threading.Event()
        attempt.cancellation.stops_by(told.set)
        into.mkdir(parents=True, exist_ok=True)
        packed = attempt.place.tmp / "packed"
        with tarfile.open(packed, "w:gz") as archive:
            for path in files:
                if told.is_set():
                    return Failure("Cancelled", "The attempt was told to stop.")
                archive.add(path, path.relative_to(folder))
        made = into / f"{folder.name}-{attempt.call.run.key.run_id}.tar.gz"
        made.write_bytes(packed.read_bytes())
        archives = sorted(into.glob(f"{folder.name}-*.tar.gz"), key=lambda path: path.stat().st_mtime_ns)
        for old in archives[: -options.keep]:
            old.unlink()
        return Succeeded({"archive": str(made), "files": len(files)})


class Journal:
    """Writes a line about every attempt to the file that RUN_JOURNAL names."""

    def before(self, attempt: Attempt) -> None:
        """Nothing runs that cannot be written down: what is raised here fails the attempt."""
        self._write(attempt, "began")

    def after(self, attempt: Attempt, outcome: Outcome) -> None:
        """What is raised here is logged."""
        self._write(attempt, type(outcome).__name__.lower())

    def _write(self, attempt: Attempt, what: str) -> None:
        if file := os.environ.get("RUN_JOURNAL"):
            line = {"run": str(attempt.call.run.key), "attempt": attempt.call.run.attempt, "what": what}
            with Path(file).open("a") as journal:
                journal.write(f"{json.dumps(line)}\n")
