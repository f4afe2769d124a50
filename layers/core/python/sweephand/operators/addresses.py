"""Connections that go where they may: a host is resolved once, every address is checked, and a checked one connected.

So there is no moment between the check and the connection in which a name could come to mean another address.
"""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property
from ipaddress import ip_address
from typing import Final

from sweephand.domain.addresses import Address, Allowed, Url
from sweephand.errors import InvalidInput

__all__ = ["CONNECT_WITHIN_S", "Guard", "Line", "Resolve", "Severed", "resolved"]

CONNECT_WITHIN_S: Final = 10.0
"""How long one address has to accept a connection; then the host's next one is tried."""

Resolve = Callable[[str, int], Sequence[str]]
"""The addresses of a host, for a port."""


class Severed(OSError):
    """Somebody cut the line."""


def resolved(host: str, port: int) -> list[str]:
    """What the system's resolver says."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


class Line:
    """The connection under way, which another thread can cut: whoever waits on it wakes up."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._is_cut = False
        self._handle: socket.socket | None = None

    def carry(self, connection: socket.socket) -> None:
        """This connection is the one to cut now. Of its own, the line has only a handle, whatever wraps the socket."""
        with self._lock:
            if self._handle is not None:
                self._handle.close()
            self._handle = connection.dup()
            if self._is_cut:
                raise Severed("The line was cut.")

    def cut(self) -> None:
        """End the connection, and every one that comes after it; does not wait."""
        with self._lock:
            self._is_cut = True
            if self._handle is not None:
                with suppress(OSError):  # it is not connected, or no longer
                    self._handle.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Let the handle go; nothing can be cut any more."""
        with self._lock:
            if self._handle is not None:
                self._handle.close()
                self._handle = None


class Guard:
    """Connects to hosts, if all their addresses are public ones or allowed here."""

    def __init__(self, allowed: Allowed, resolve: Resolve = resolved) -> None:
        self._allowed = allowed
        self._resolve = resolve

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        """Certificates are always verified. Made once, since reading the authorities takes a while."""
        return ssl.create_default_context()

    def connect(self, url: Url, line: Line) -> socket.socket:
        """A connection to one of the host's addresses, with TLS for https; `InvalidInput` where one is refused."""
        connection = self._to_first_of(self._addresses(url), url, line)
        if url.scheme == "http":
            return connection
        try:
            return self._tls.wrap_socket(connection, server_hostname=url.host)
        except BaseException:
            connection.close()
            raise

    def _addresses(self, url: Url) -> list[Address]:
        addresses = [url.address] if url.address else [ip_address(one) for one in self._resolve(url.host, url.port)]
        if not addresses:
            raise socket.gaierror(socket.EAI_NONAME, "it has no address")
        for address in addresses:
            self._allowed.check(url, address)
        return addresses

    def _to_first_of(self, addresses: Sequence[Address], url: Url, line: Line) -> socket.socket:
        error: OSError | None = None
        for address in addresses:
            connection = socket.socket(socket.AF_INET if address.version == 4 else socket.AF_INET6)
            try:
                line.carry(connection)
                connection.settimeout(CONNECT_WITHIN_S)
                connection.connect((str(address), url.port))
                connection.settimeout(None)  # from here on, whoever waits for the answer cuts the line in time
            except Severed:
                connection.close()
                raise
            except OSError as failed:
                connection.close()
                error = failed
            else:
                return connection
        raise error or InvalidInput(f"{url.host} has no address.", "url")
