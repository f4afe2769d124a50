"""The call under way: who asks, in which namespace, and what the world is."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from datetime import datetime
from threading import Event
from typing import TYPE_CHECKING, Any, Final

from aws_lambda_powertools.event_handler import Response
from msgspec import Struct

from sweephand.api import reading
from sweephand.api.downloads import Downloads
from sweephand.api.reading import header, version_of
from sweephand.api.refusals import VersionNeeded
from sweephand.domain.access import Caller
from sweephand.domain.ids import JobKey, JobName, Namespace, RunId, RunKey
from sweephand.domain.kinds import Installed
from sweephand.domain.targets import Targets
from sweephand.domain.trail import Deed
from sweephand.engine.match import Wanted
from sweephand.ports import World

if TYPE_CHECKING:
    from sweephand.api.sessions import Issuer

__all__ = ["Answer", "Asked", "Patience", "answer", "asked", "asking", "no_content"]

Answer = Response[Any]


class Patience:
    """Of a caller that is kept waiting without a thread: whoever holds its connection makes the call again when there
    may be something for it, or when its time is over."""

    def __init__(self, is_behind: Callable[[Wanted], bool]) -> None:
        self.is_behind: Final = is_behind
        """Whether others have waited for the same for longer."""
        self.gone: Final = Event()
        """The caller went away: nobody hears the answer."""
        self.is_over = False
        self.wanted: Wanted | None = None
        """What the caller waits for, if the last call came to that; the answer is then for the end of its time."""
        self.wait_s = 0

    @property
    def has_waited(self) -> bool:
        """Whether this is not the first call."""
        return self.wanted is not None

    def waits(self, wanted: Wanted, wait_s: int) -> None:
        """The caller goes on waiting."""
        self.wanted, self.wait_s = wanted, wait_s

    def ends(self) -> None:
        """The caller has its answer."""
        self.wanted = None


class Asked(Struct, frozen=True):
    """What handlers need to know beside their arguments."""

    world: World
    caller: Caller
    event: reading.Event
    kinds: frozenset[str]
    """Kinds of steps that this place can run."""
    operators: Installed
    """Those that are installed beside the built-in ones, and what this place checks of those."""
    idempotency_key: str | None
    issuer: Issuer | None
    targets: Targets | None = None
    """What tasks may call on AWS, where they can at all."""
    downloads: Downloads | None = None
    """Who signs addresses of files; None where the store does, or nobody."""
    patience: Patience | None = None
    """Where there is none, nobody is kept waiting."""

    @property
    def namespace(self) -> Namespace:
        return self.caller.namespace

    @property
    def now(self) -> datetime:
        return self.world.clock.now()

    def job(self, name: str) -> JobKey:
        """The key of a job in the caller's namespace: there is no way to name another's."""
        return JobKey(self.namespace, JobName(name))

    def run(self, job: str, run_id: str) -> RunKey:
        return RunKey(self.job(job), RunId(run_id))

    @property
    def if_match(self) -> int | None:
        """The version that the change is based on."""
        return version_of(header(self.event, "if-match"), "If-Match")

    @property
    def must_be_new(self) -> bool:
        """Whether the caller wants to create and not to change."""
        return (header(self.event, "if-none-match") or "").strip() == "*"

    def based_on(self, current: int) -> int:
        """The version that the change is based on, which it must say; `*` is the current one, whichever that is."""
        version = self.if_match
        if header(self.event, "if-match") is None:
            raise VersionNeeded(
                "Say which version this is based on: If-Match: <version>, or If-None-Match: * to create."
            )
        return current if version is None else version

    def record(self, action: str, subject: str, *, note: str = "", after: Mapping[str, Any] | None = None) -> None:
        """Write the audit row of what is about to be done: nothing that has no row of its own is done without one."""
        at, nonce = self.now, self.world.dice.nonce()
        self.world.trail.append(
            Deed(self.namespace, at, nonce, self.caller.actor, action, subject, after=after, note=note)
        )


_current: Final[ContextVar[Asked]] = ContextVar("asked")


def asking(ask: Asked) -> None:
    """From now on, in this thread, this is the call under way."""
    _current.set(ask)


def asked() -> Asked:
    """The call under way."""
    return _current.get()


def answer(status: int, body: Mapping[str, Any], **headers: str) -> Answer:
    """A JSON answer; headers' names are given with underscores."""
    named: dict[str, str | list[str]] = {name.replace("_", "-"): value for name, value in headers.items()}
    return Response(status, "application/json", json.dumps(body, separators=(",", ":")), headers=named)


def no_content() -> Answer:
    """Done, and nothing to say."""
    return Response(204, None, "")
