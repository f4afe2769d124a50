"""The ports over SQLite: the local engine's store, the simulator's disk, and a double for users' tests."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Final

from sweephand import ports
from sweephand.embedded.artifacts import FileArtifacts
from sweephand.embedded.backlog import Backlog
from sweephand.embedded.dags import Dags
from sweephand.embedded.database import Database
from sweephand.embedded.due import Due, Shards
from sweephand.embedded.jobs import Jobs
from sweephand.embedded.logs import FileLogs
from sweephand.embedded.offers import Offers
from sweephand.embedded.packs import FilePacks
from sweephand.embedded.queue import Bell, Inbox, Queue
from sweephand.embedded.replies import Replies
from sweephand.embedded.runs import Runs
from sweephand.embedded.seal import Secrets, new_key
from sweephand.embedded.shared import Shared
from sweephand.embedded.slots import Slots
from sweephand.embedded.trail import Trail
from sweephand.embedded.views import Feed, Views

__all__ = ["PACE", "Stores", "new_key", "open_stores"]

PACE: Final = ports.Pace(
    lookahead=timedelta(seconds=5),
    step=timedelta(0),
    spread=timedelta(0),
    margin=timedelta(0),
    lease_grace=timedelta(seconds=30),
    sweep_lease=timedelta(seconds=10),
)
"""One machine has one clock, and looking again is cheap: plan late."""


class Stores(ports.Stores, frozen=True):
    """Every port over one database."""

    logs: FileLogs
    artifacts: FileArtifacts
    packs: FilePacks
    feed: Feed
    database: Database
    bell: Bell
    backlog: Backlog

    def await_work(self, timeout: timedelta) -> None:
        """Block until something may have been sent, here or by another process, or the time-out."""
        self.bell.wait(timeout)

    def close(self) -> None:
        self.database.close()
        self.logs.close()
        self.artifacts.close()
        self.packs.close()


def open_stores(path: str | Path | None, *, clock: ports.Clock, secrets_key: Callable[[], str] | None = None) -> Stores:
    """The stores in a file and in folders beside it, made or upgraded where needed; None keeps them for as long as they
    are open.

    Secrets are sealed with `secrets_key`; without one, with a key that ends with the process.
    """
    database = Database(None if path is None else Path(path))
    bell = Bell(database, clock)
    beside = None if path is None else Path(path).absolute().parent
    return Stores(
        jobs=Jobs(database),
        runs=Runs(database, clock),
        dags=Dags(database),
        due=Due(database),
        shards=Shards(database),
        slots=Slots(database),
        shared=Shared(database),
        trail=Trail(database),
        replies=Replies(database),
        offers=Offers(database),
        queue=Queue(database, clock, bell),
        inbox=Inbox(database, clock),
        views=Views(database),
        logs=FileLogs(beside / "logs" if beside else None),
        artifacts=FileArtifacts(beside / "artifacts" if beside else None),
        packs=FilePacks(beside / "code" if beside else None),
        secrets=Secrets(secrets_key or new_key),
        feed=Feed(database),
        database=database,
        bell=bell,
        backlog=Backlog(database, clock),
    )
