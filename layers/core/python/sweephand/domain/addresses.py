"""Where an HTTP request may go: URLs taken apart in one way only, and the addresses that are nobody's business.

A URL is read by this module and by no other, so that what is checked is what is connected to. A host is a name or an
address in its usual spelling: what only looks like a number (`2130706433`, `0x7f.1`, `127.1`) is refused, since
resolvers read it as an address.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network
from typing import Any, Final
from urllib.parse import quote

from msgspec import Struct

from sweephand.domain.fields import shown
from sweephand.errors import InvalidInput

__all__ = ["NOWHERE", "Address", "Allowed", "Url", "check_written_url", "parse_address", "parse_url", "why_never"]

Address = IPv4Address | IPv6Address
_Network = IPv4Network | IPv6Network

PORTS: Final = {"http": 80, "https": 443}
PORT_MAX: Final = 65_535
HOST_CHARS_MAX: Final = 253
ALLOWED_MAX: Final = 100

_URL: Final = re.compile(r"(https?)://([^/?#]*)([^#]*)(?:#.*)?", re.IGNORECASE)
_HOST_AND_PORT: Final = re.compile(r"(\[[^\[\]]*\]|[^:\[\]]*)(?::([0-9]*))?")
_LABEL: Final = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER: Final = re.compile(r"[0-9]+|0x[0-9a-f]*")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_KEPT: Final = "!$%&'()*+,-./:;=?@[]_~|"
"""What a path and a query may contain as it is; all else is percent-encoded."""
_TEMPLATE: Final = "${"

_METADATA: Final = "it is the address of a cloud's credentials"
_NEVER: Final[tuple[tuple[_Network, str], ...]] = tuple(
    (ip_network(network), why)
    for network, why in (
        ("169.254.169.254", _METADATA),
        ("169.254.170.2", _METADATA),
        ("169.254.170.23", _METADATA),
        ("100.100.100.200", _METADATA),
        ("168.63.129.16", _METADATA),
        ("192.0.0.192", _METADATA),
        ("fd00:ec2::/32", _METADATA),
        ("fd20:ce::254", _METADATA),
        ("0.0.0.0/8", "it is no address of anybody"),
        ("::/128", "it is no address of anybody"),
        ("224.0.0.0/4", "it is a multicast address"),
        ("ff00::/8", "it is a multicast address"),
        ("255.255.255.255", "it is the broadcast address"),
    )
)
"""Nothing can allow these."""
_PRIVATE: Final[tuple[tuple[_Network, str], ...]] = tuple(
    (ip_network(network), why)
    for network, why in (
        ("127.0.0.0/8", "it is this machine's own (loopback)"),
        ("::1", "it is this machine's own (loopback)"),
        ("10.0.0.0/8", "it is private"),
        ("172.16.0.0/12", "it is private"),
        ("192.168.0.0/16", "it is private"),
        ("fc00::/7", "it is private"),
        ("100.64.0.0/10", "it is shared by a provider's customers"),
        ("169.254.0.0/16", "it is link-local"),
        ("fe80::/10", "it is link-local"),
        ("192.0.0.0/24", "it is reserved"),
        ("192.0.2.0/24", "it is reserved for documentation"),
        ("192.88.99.0/24", "it is reserved"),
        ("198.18.0.0/15", "it is reserved for benchmarks"),
        ("198.51.100.0/24", "it is reserved for documentation"),
        ("203.0.113.0/24", "it is reserved for documentation"),
        ("240.0.0.0/4", "it is reserved"),
        ("2001::/23", "it is reserved, or a tunnel (Teredo)"),
        ("2001:db8::/32", "it is reserved for documentation"),
        ("2002::/16", "it is a tunnel (6to4)"),
        ("3fff::/20", "it is reserved for documentation"),
    )
)
"""What the registries of special addresses name: a place may allow some of these."""
_PUBLIC_V6: Final = IPv6Network("2000::/3")
_TRANSLATED: Final = (IPv6Network("::ffff:0:0/96"), IPv6Network("64:ff9b::/96"))
"""IPv4 addresses written as IPv6 ones: mapped, and behind a translator (NAT64)."""


class Url(Struct, frozen=True):
    """A URL to connect to: the host is in lower case and ASCII, and what is after it is ready to be sent."""

    scheme: str
    host: str
    address: Address | None
    """Where the host is an address and not a name."""
    port: int
    target: str
    """Path and query."""

    @property
    def origin(self) -> tuple[str, str, int]:
        return self.scheme, self.host, self.port

    @property
    def authority(self) -> str:
        """As the header `Host` has it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}{self.target}"


def parse_url(text: str, path: str = "url") -> Url:
    """The parts of a URL, or a refusal of what is none, or of what no request should carry."""
    if _CONTROL.search(text):
        raise InvalidInput("A URL contains no line breaks and no control characters.", path)
    found = _URL.fullmatch(text)
    if found is None:
        raise InvalidInput(f"{shown(text)} is not right: a URL begins with https:// or http://.", path)
    scheme = found[1].lower()
    host, port = _host_and_port(found[2], PORTS[scheme], path)
    rest = found[3] if found[3].startswith("/") else f"/{found[3]}"
    return Url(scheme, str(host), None if isinstance(host, str) else host, port, quote(rest, _KEPT, errors="replace"))


def parse_address(host: str, path: str = "url") -> Address | str:
    """The address that a host is, or the name, in lower case and ASCII; other spellings are refused."""
    name = host if host.isascii() else _ascii(host, path)
    name = name.lower().removesuffix(".")
    if "%" in name:
        raise InvalidInput(f"{shown(host)} is no host: write it without '%', neither encoded nor with a zone.", path)
    if name.startswith("["):
        try:
            return IPv6Address(name[1:-1])
        except ValueError:
            raise InvalidInput(f"{shown(host)} is no IPv6 address.", path) from None
    labels = name.split(".")
    if _NUMBER.fullmatch(labels[-1]):
        try:
            return IPv4Address(name)
        except ValueError:
            message = f"{shown(host)} is no IPv4 address: write it as four decimal numbers, such as 198.51.100.7."
            raise InvalidInput(message, path) from None
    if len(name) > HOST_CHARS_MAX or not all(map(_LABEL.fullmatch, labels)):
        raise InvalidInput(f"{shown(host)} is no host: it is a name such as example.org, or an address.", path)
    return name


def _host_and_port(authority: str, default: int, path: str) -> tuple[Address | str, int]:
    if "@" in authority:
        raise InvalidInput("A URL names no user and no password: use a header.", path)
    found = _HOST_AND_PORT.fullmatch(authority)
    if found is None:
        raise InvalidInput(f"{shown(authority)} is no host with a port.", path)
    return parse_address(found[1], path), _port(found[2], default, path)


def _port(text: str | None, default: int, path: str) -> int:
    if not text:
        return default
    port = int(text) if len(text) <= 5 else 0
    if not 1 <= port <= PORT_MAX:
        raise InvalidInput(f"{text[:16]} is no port: use 1 to {PORT_MAX}.", path)
    return port


def _ascii(host: str, path: str) -> str:
    """An international name as resolvers know it; wide digits and dots become plain ones."""
    try:
        return host.encode("idna").decode()
    except UnicodeError:
        raise InvalidInput(f"{shown(host)} is no host: no such international name can be.", path) from None


def _unwrapped(address: Address) -> Address:
    """The IPv4 address that an IPv6 one only translates."""
    if isinstance(address, IPv6Address) and any(address in network for network in _TRANSLATED):
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address


def why_never(address: Address) -> str:
    """Why no request may go to this address, whatever a place allows; empty where a place may allow it."""
    return _first(_NEVER, _unwrapped(address))


def _why_not(address: Address) -> str:
    """Why this address is not a public one; empty where it is."""
    found = _first(_PRIVATE, address)
    if found or isinstance(address, IPv4Address) or address in _PUBLIC_V6:
        return found
    return "it is reserved"


def _first(table: tuple[tuple[_Network, str], ...], address: Address) -> str:
    return next((why for network, why in table if address in network), "")


class _Rule(Struct, frozen=True):
    """What a place allows besides: a network or a name, on one port or on all."""

    network: _Network | None
    name: str
    port: int | None

    def covers(self, url: Url, address: Address) -> bool:
        if self.port not in (None, url.port):
            return False
        return url.host == self.name if self.network is None else address in self.network


class Allowed(Struct, frozen=True):
    """What requests may reach besides public addresses."""

    rules: tuple[_Rule, ...] = ()

    @classmethod
    def parse(cls, values: Iterable[str], path: str) -> Allowed:
        """Networks and hosts, each with a port or without: `10.1.0.0/16`, `[fd00::/8]:443`, `billing.internal:8443`."""
        given = [value.strip() for value in values if value.strip()]
        if len(given) > ALLOWED_MAX:
            raise InvalidInput(f"These are {len(given)} places: at most {ALLOWED_MAX} are right.", path)
        return cls(tuple(_rule(value, path) for value in given))

    def why_not(self, url: Url, address: Address) -> str:
        """Why a request to this URL may not go to this address of its host; empty where it may."""
        unwrapped = _unwrapped(address)
        never = why_never(unwrapped)
        if never or any(rule.covers(url, unwrapped) for rule in self.rules):
            return never
        return _why_not(unwrapped)

    def check(self, url: Url, address: Address, path: str = "url") -> None:
        """Refuse a request to this URL if it may not go to this address of its host."""
        if why := self.why_not(url, address):
            where = f"{url.host}, which is {address}" if url.address is None else str(address)
            raise InvalidInput(f"Requests may not go to {where}: {why}.", path)


NOWHERE: Final = Allowed()
"""Nothing but public addresses."""


def _rule(value: str, path: str) -> _Rule:
    bracketed = re.fullmatch(r"\[([^\]]+)\](?::([0-9]+))?", value)
    plain = re.fullmatch(r"([^:]+)(?::([0-9]+))?", value)
    found = bracketed or plain
    text, port = (found[1], found[2]) if found else (value, None)
    number = _port(port, 0, path) if port else None
    try:
        network = ip_network(text)
    except ValueError:
        if found is None or "/" in text or not isinstance(host := parse_address(text, path), str):
            raise InvalidInput(
                f"{shown(value)} is no place: write a network such as 10.1.0.0/16, or a host such as "
                "billing.internal:8443.",
                path,
            ) from None
        return _Rule(None, host, number)
    if any(_is_within(network, translated) for translated in _TRANSLATED):
        raise InvalidInput(f"{shown(value)} stands for IPv4 addresses: write it as those.", path)
    for never, why in _NEVER:
        if _is_within(network, never):
            raise InvalidInput(f"{shown(value)} cannot be allowed: {why}.", path)
    return _Rule(network, "", number)


def _is_within(network: _Network, other: _Network) -> bool:
    if isinstance(network, IPv4Network):
        return isinstance(other, IPv4Network) and network.subnet_of(other)
    return isinstance(other, IPv6Network) and network.subnet_of(other)


def check_written_url(text: Any, path: str, allowed: Allowed | None = None) -> None:
    """Refuse a URL of a definition as far as it says where it goes: a template's value is judged when it runs.

    Without a word about what is allowed, only what nothing can allow is refused.
    """
    if not isinstance(text, str):
        return
    literal, template, _ = text.partition(_TEMPLATE)
    if template and not re.fullmatch(r"[A-Za-z+.-]+://[^/?#]+[/?#].*", literal, re.DOTALL):
        return
    url = parse_url(literal, path)
    if url.address is None:
        return
    why = why_never(url.address) if allowed is None else allowed.why_not(url, url.address)
    if why:
        raise InvalidInput(f"Requests may not go to {url.address}: {why}.", path)
