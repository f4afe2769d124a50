"""The data folder of `sweephand up`: the database, the secrets beside it, room for attempts and what they leave behind.

Several processes may start on one folder at once: what is made the first time is made under a lock, and each file
appears whole or not at all.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shlex
import stat
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from sweephand.api.sessions import Issuer
from sweephand.domain.access import EVERYWHERE, Role
from sweephand.embedded import new_key
from sweephand.engine.issue import issue, recognise
from sweephand.errors import InvalidInput, Refused
from sweephand.ports import World

ACTOR: Final = "sweephand:up"
"""How the audit log names what the server does by itself when it starts."""
_OTHERS: Final = stat.S_IRWXG | stat.S_IRWXO


class Folder:
    """A folder that is there, and what is in it."""

    def __init__(self, path: Path) -> None:
        self.path: Final = path
        self.database: Final = path / "sweephand.db"
        self.token: Final = path / "admin.token"
        self.key: Final = path / "issuer.key"
        self.secrets: Final = path / "secrets.key"
        self.work: Final = path / "work"
        self.logs: Final = path / "logs"
        self.artifacts: Final = path / "artifacts"
        self.code: Final = path / "code"
        self.unpacked: Final = path / "unpacked"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """One process at a time; the lock of a killed one is free."""
        descriptor = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


def open_folder(path: Path, *, database: bool = True) -> Folder:
    """The folder, made where it is not there; refused where others can change it, or read its secrets."""
    folder = Folder(path.absolute())
    try:
        folder.path.parent.mkdir(parents=True, exist_ok=True)
        folder.path.mkdir(mode=0o700, exist_ok=True)
        if folder.path.stat().st_mode & stat.S_IWOTH:
            raise Refused(f"Others can write to {folder.path}: {_mend('700', folder.path)}")
        if database:
            # Made here, so that neither the file nor the log that SQLite keeps beside it can be read by others.
            os.close(os.open(folder.database, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        for own in (folder.work, folder.logs, folder.artifacts, folder.code, folder.unpacked):
            own.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise InvalidInput(f"{folder.path} cannot be used: {error.strerror}.", "data") from error
    for secret in (folder.token, folder.key, folder.secrets):
        _read(secret)
    return folder


def admin_token(folder: Folder, world: World) -> str:
    """The administrator's token; a new one the first time, and where the database does not know the old one."""

    def issued() -> str:
        return issue(world, namespace=EVERYWHERE, role=Role.ADMIN, name="admin", actor=ACTOR).text

    return _kept(folder.token, issued, is_good=lambda text: recognise(world, text) is not None)


def issuer_key(folder: Folder) -> str:
    """The private key, as PEM, that this folder's session tokens are signed with."""
    return _kept(folder.key, lambda: Issuer.new_key().decode(), is_good=bool)


def secrets_key(folder: Folder) -> str:
    """The keys, one in a line, that this folder's secrets are sealed with; made when the first secret is."""
    with folder.locked():
        return _kept(folder.secrets, new_key, is_good=bool)


def _kept(path: Path, make: Callable[[], str], *, is_good: Callable[[str], bool]) -> str:
    """A secret from its file; made, and put there, where there is none that is any good."""
    text = _read(path)
    if text is None or not is_good(text):
        text = make().strip()
        _write(path, text)
    return text


def _read(path: Path) -> str | None:
    """A secret's text; refused where anybody else may know it."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        reason = "it is a link" if error.errno == errno.ELOOP else error.strerror
        raise Refused(f"{path} cannot be used: {reason}.") from error
    with os.fdopen(descriptor, encoding="utf-8", errors="replace") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise Refused(f"{path} cannot be used: it is no file.")
        if found.st_uid != os.geteuid() and os.geteuid() != 0:
            raise Refused(f"{path} belongs to another user: remove it, or name another folder with --data.")
        if found.st_mode & _OTHERS:
            raise Refused(f"Others can read {path}: {_mend('600', path)}")
        return file.read().strip()


def _write(path: Path, text: str) -> None:
    """Put a secret in its file, whole, readable by its owner only."""
    descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)  # made with mode 0600
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(f"{text}\n")
            file.flush()
            os.fsync(descriptor)
        Path(temporary).replace(path)
    except BaseException:
        with suppress(FileNotFoundError):
            Path(temporary).unlink()
        raise


def _mend(mode: str, path: Path) -> str:
    return f"`chmod {mode} {shlex.quote(str(path))}` mends it."
