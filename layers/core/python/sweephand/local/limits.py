"""How much one machine's server takes on."""

from __future__ import annotations

import resource
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from sweephand.api.reading import BODY_BYTES_MAX, CODE_BYTES_MAX


class Limits(Struct, frozen=True):
    """A limit on everything that a client can make large, many or slow."""

    connections: int = 2_048
    """Open ones; each more is told to come back."""
    threads: int = 64
    """Requests at work at once."""
    polls: int = 1_536
    """Workers that wait for work to come: they leave connections to others."""
    poll_threads: int = 8
    """Of workers' requests for work, those at work at once."""
    url_chars: int = 8_192
    headers: int = 100
    head_bytes: int = 16_384
    """A request's first line and headers."""
    head_within_s: float = 10.0
    body_bytes: int = BODY_BYTES_MAX
    code_bytes: int = CODE_BYTES_MAX
    """The body of a call that stores code; whoever makes it is known by then."""
    body_within_s: float = 30.0
    send_within_s: float = 60.0
    """How long a client may take to read an answer."""
    idle_s: int = 30
    """How long a connection stays open between two requests."""
    finish_within_s: int = 10
    """How long requests may still take once the server is told to stop."""
    linger_s: float = 1.0
    """How long what is left of a refused body is dropped, so that the refusal is read."""
    linger_bytes: int = 16_777_216
    listeners: int = 100
    """Connections at /live, which count among the open ones too: the others keep the rest."""
    message_bytes: int = 32_768
    """A message at /live; API Gateway has the same."""
    prove_within_s: float = 10.0
    """How long a connection at /live may stay without a token."""
    unsent_bytes: int = 1_048_576
    """What may wait to be sent at /live: who reads too slowly is let go of, comes back, and asks for a snapshot."""
    unread_bytes: int = 262_144
    """What this machine may hold of it beyond that, on its way."""


_FILES_BESIDE: Final = 512
"""Open files that are no connections: the database's, logs, and the pipes of programs."""


def with_room_for_files(limits: Limits) -> Limits:
    """These limits, with the process's own on open files raised as far as they need; if that is not far enough, with
    fewer connections: one more than there are files for would be accepted and then stand still."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = limits.connections + _FILES_BESIDE
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return limits
    room = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (room, hard))
    except (OSError, ValueError):
        room = soft  # the system has a bound of its own
    connections = max(room - _FILES_BESIDE, room // 2)
    return replace(limits, connections=connections, polls=min(limits.polls, connections * 3 // 4))
