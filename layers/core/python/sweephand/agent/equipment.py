"""What an agent is told by its environment, and what it is made of: never by its words, which everybody can see."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final, TextIO

from msgspec import Struct

from sweephand.agent.beside import Beside
from sweephand.agent.fluent import SOCKET
from sweephand.agent.lease import OwnLease, Work
from sweephand.agent.place import Resumed, Shared
from sweephand.agent.work import BEAT_EVERY, Equip
from sweephand.domain.limits import OUTPUT_KEPT_MAX
from sweephand.errors import InvalidInput
from sweephand.logs import Line, Log, LogKey
from sweephand.operators import Keep, Logging, Operators, Unpacked
from sweephand.operators.unpacked import Fetch
from sweephand.ports import Clock
from sweephand.topology import Names

METADATA: Final = "ECS_CONTAINER_METADATA_URI_V4"
CALLER: Final = "sweephand/agent"
SHIPPED_EVERY: Final = timedelta(seconds=1)
GRACE: Final = timedelta(seconds=60)
"""How long a task has to end when it is told to: Fargate gives its containers two minutes at the most."""


class Told(Struct, frozen=True):
    """The variables of an agent, each named for its field: `url` is in SWEEPHAND_URL."""

    url: str
    lease: str
    epoch: int
    name: str = ""
    """The deployment whose logs are written; without one, what the task prints is printed."""
    artifacts: str = ""
    """The bucket for what the task leaves behind."""
    shared: str = ""
    """The folder that a container of somebody else's sees too: the agent waits for that container."""
    socket: str = str(SOCKET)
    """Where that container's lines come from."""
    work: str = ""
    """The folder that tasks run in; else one for what is temporary."""
    beat: str = ""
    """Seconds between two heartbeats; 15 unless it is said."""
    metadata: str = ""

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> Told:
        given = {field: environ.get(_variable(field), "") for field in cls.__struct_fields__ if field != "metadata"}
        for field in ("url", "lease", "epoch"):
            if not given[field]:
                raise InvalidInput(f"{_variable(field)} says nothing: an agent is launched for a lease.", field)
        if not given["epoch"].isascii() or not given["epoch"].isdigit():
            raise InvalidInput(f"{_variable('epoch')} is a whole number, and is '{given['epoch']}'.", "epoch")
        known = {field: value for field, value in given.items() if value and field != "epoch"}
        told = cls(**known, epoch=int(given["epoch"]), metadata=environ.get(METADATA, ""))
        if told.shared and not told.metadata:
            raise InvalidInput(f"{METADATA} says nothing: there is no container to wait for.", "shared")
        return told

    @property
    def beat_every(self) -> timedelta:
        try:
            return timedelta(seconds=float(self.beat)) if self.beat else BEAT_EVERY
        except (ValueError, OverflowError):
            raise InvalidInput(f"{_variable('beat')} is a number of seconds, and is '{self.beat}'.", "beat") from None

    def own_lease(self, clock: Clock) -> OwnLease:
        return OwnLease(self.url, self.lease, self.epoch, clock=clock)

    def equip(self, environ: Mapping[str, str], clock: Clock) -> Equip:
        """What runs the work: the agent itself, or a container that it waits for."""
        logging, keep, fetch = self._stores()
        code = Unpacked(Path(self.work or tempfile.gettempdir()) / "sweephand-code", fetch) if fetch else None
        folder = Path(self.shared or self.work or Path(tempfile.gettempdir()) / "sweephand")

        def equipped(work: Work, left: bytes | None) -> tuple[Operators, Resumed]:
            place = Shared(folder, work.call, left) if self.shared else Resumed(folder, work.call, left)
            beside = {"container": Beside(self.metadata, Path(self.socket))} if self.shared else None
            operators = Operators(
                folder,
                environ=environ,
                grace=GRACE,
                logging=logging,
                keep=keep,
                output_max=OUTPUT_KEPT_MAX,  # it is reported, and kept by who hears it
                clock=clock,
                only=beside,
                code=code,
                place=lambda _folder, _call: place,
            )
            return operators, place

        return equipped

    def _stores(self) -> tuple[Logging, Keep | None, Fetch | None]:
        if not self.name:
            return Logging(lambda _key: _Printed(sys.stdout)), None, None
        from sweephand import aws  # not before: where nothing is kept there, nothing of it is needed

        config = aws.config(CALLER)
        logs, artifacts = aws.logs(Names(self.name), config), aws.artifacts(self.artifacts, config)

        def opened(key: LogKey) -> Log:
            return logs.open(key)

        return Logging(opened, every=SHIPPED_EVERY), artifacts.keep, aws.packs(self.artifacts, config).read


class _Printed:
    """A log that goes where the agent's own words go."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def append(self, lines: Sequence[Line]) -> None:
        for line in lines:
            self._out.write(f"{line.stream}: {line.text}\n")
        self._out.flush()

    def close(self, at: datetime, *, lost: int = 0) -> None:
        """It ends with the agent."""


def _variable(field: str) -> str:
    return f"SWEEPHAND_{field.upper()}"
