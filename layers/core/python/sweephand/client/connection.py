"""Which server, as whom: from arguments, the environment, the file that `sweephand login` writes, or the local default.

A token goes only to the server that it was meant for: the one of the login file to the address in that file, the
local administrator's to the default local address. Nothing travels readable over a network, or through a proxy.
"""

from __future__ import annotations

import ipaddress
import json
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from msgspec import Struct

from sweephand.errors import InvalidInput, Refused

__all__ = ["DEFAULT_URL", "Connection", "config_path"]

DEFAULT_URL: Final = "http://127.0.0.1:8080"
ADMIN_TOKEN: Final = Path(".sweephand", "admin.token")
"""Where `sweephand up` leaves its administrator's token, from the folder that it was started in."""

_API: Final = "/api/v1"
_FILE_BYTES_MAX: Final = 65_536
_READABLE_BY_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO
_FIELDS: Final = ("url", "token", "namespace")


def config_path() -> Path:
    """Where `sweephand login` keeps what it was given."""
    return Path("~/.config/sweephand/config.json").expanduser()


class Connection(Struct, frozen=True):
    """A server's address, and what to say to it; the token is left out of the text form."""

    url: str
    token: str | None
    namespace: str | None

    def __repr__(self) -> str:
        return f"Connection(url={self.url!r}, namespace={self.namespace!r})"

    @classmethod
    def of(
        cls,
        url: str | None = None,
        token: str | None = None,
        namespace: str | None = None,
        *,
        environ: Mapping[str, str] | None = None,
    ) -> Connection:
        """Each value from the first place that has it."""
        environ = os.environ if environ is None else environ
        path = config_path()
        file = _read_config(path)
        there = checked_url(file["url"]) if file.get("url") else DEFAULT_URL
        url = checked_url(url or environ.get("SWEEPHAND_URL") or there)
        token = token or environ.get("SWEEPHAND_TOKEN") or (file.get("token") if url == there else None)
        if not token and url == DEFAULT_URL:
            token = _read_private(ADMIN_TOKEN)
        namespace = namespace or environ.get("SWEEPHAND_NAMESPACE") or file.get("namespace")
        return cls(url, checked_token(token) if token else None, namespace or None)

    @property
    def is_here(self) -> bool:
        """Whether the server is on this machine, so that nobody is between us."""
        return _is_loopback(urlsplit(self.url).hostname or "")

    def save(self) -> Path:
        """Keep it for later calls, for its owner's eyes only; an interrupted call leaves the old file."""
        path = config_path()
        kept = {name: value for name in _FIELDS if (value := getattr(self, name)) is not None}
        fresh = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            fresh.unlink(missing_ok=True)
            # Made with its mode: there is no moment at which others could read it.
            handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(kept, file, indent=2)
                file.write("\n")
            fresh.replace(path)
        except OSError as error:
            raise InvalidInput(f"{path} cannot be written: {error.strerror}.") from None
        return path


def checked_url(text: str) -> str:
    """The address without a trailing slash, or a refusal of one that would give the token away."""
    try:
        parts = urlsplit(text.strip())
        host, _ = parts.hostname or "", parts.port
    except ValueError as error:
        raise InvalidInput(f"The server's address is not a URL: {error}.", "url") from None
    if parts.scheme not in {"http", "https"} or not host:
        raise InvalidInput(f"The server's address must be an http or https URL, such as {DEFAULT_URL}.", "url")
    if parts.username is not None or parts.query or parts.fragment:
        raise InvalidInput("The server's address is a scheme, a host and a port: a token has its own place.", "url")
    if parts.scheme == "http" and not _is_loopback(host):
        raise InvalidInput(f"{host} is not on this machine: use https, or everybody between can read the token.", "url")
    path = parts.path.rstrip("/").removesuffix(_API)
    return f"{parts.scheme}://{parts.netloc.lower()}{path}"


def checked_token(text: str) -> str:
    """The token without the space around it; its text is never quoted in a message."""
    token = text.strip()
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise InvalidInput("The token contains characters that no token has: copy it again.", "token")
    return token


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _read_config(path: Path) -> dict[str, str]:
    text = _read_private(path)
    if text is None:
        return {}
    try:
        content: Any = json.loads(text)
    except ValueError:
        content = None
    known = isinstance(content, dict) and all(
        name in _FIELDS and isinstance(value, str) for name, value in content.items()
    )
    if not known:
        raise InvalidInput(f"{path} must be a JSON object of texts: url, token, namespace. Run `sweephand login`.")
    return dict(content)


def _read_private(path: Path) -> str | None:
    """The content of a file with a secret; None where there is no file. One that others can read is refused."""
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            if os.name == "posix" and mode & _READABLE_BY_OTHERS:
                raise Refused(
                    f"{path} holds a token and other users can read it (mode {stat.S_IMODE(mode):04o}): "
                    f"run `chmod 600 {path}`, and revoke the token if others use this machine."
                )
            return file.read(_FILE_BYTES_MAX).decode()
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        raise InvalidInput(f"{path} is not text.") from None
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}.") from None
