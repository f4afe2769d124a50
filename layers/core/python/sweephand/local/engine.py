"""What `sweephand up` starts: an engine behind the API, on a data folder."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from msgspec import Struct

from sweephand.domain.bounds import USUAL, Bounds
from sweephand.domain.images import Permitted
from sweephand.domain.targets import Targets
from sweephand.local.folder import Folder
from sweephand.local.gateway import Api
from sweephand.local.polls import Match
from sweephand.local.sockets import Sockets
from sweephand.ports import Clock, Dice


class Options(Struct, frozen=True):
    """What an engine is started with."""

    data: Path
    clock: Clock
    dice: Dice
    workers: int
    examples: bool
    http_may_reach: tuple[str, ...] = ()
    """Networks and hosts that `http` tasks may reach besides public addresses."""
    targets: Targets = Targets()
    """What tasks may call on AWS."""
    bounds: Bounds = USUAL
    """What programs of tasks may take."""
    address: str = ""
    """Where its API is served."""
    containers_as_processes: bool = False
    """Whether containers run as processes of this machine, without their images."""
    jobs: Path | None = None
    """A folder whose job files are scanned."""
    keep_jobs: bool = False
    """Whether jobs stay whose files are removed."""
    images: Permitted = Permitted()
    """Which images containers may be made of."""


class Engine(Struct, frozen=True):
    """An engine that is ready: `loops` is what works behind its API, once it is entered."""

    api: Api
    folder: Folder
    token: str
    loops: AbstractContextManager[Any]
    sockets: Sockets
    """Who listens."""
    match: Match | None = None
    """Whose turn it is of those who wait for work, where they are kept waiting."""
    note: str = ""
    """What people should know when it is up."""


Opening = Callable[[Options], AbstractContextManager[Engine]]
