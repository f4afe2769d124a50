"""How much one machine's server takes on."""

from __future__ import annotations

from msgspec import Struct

from sweephand.api.reading import BODY_BYTES_MAX, CODE_BYTES_MAX


class Limits(Struct, frozen=True):
    """A limit on everything that a client can make large, many or slow."""

    connections: int = 256
    """Open ones; each more is told to come back."""
    threads: int = 64
    """Requests at work at once; and as many again that wait for work to come."""
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
