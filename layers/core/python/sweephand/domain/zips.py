"""Zips of code: the same bytes from the same files, and what is refused of a zip that somebody else made."""

from __future__ import annotations

import hashlib
import io
import stat
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Final

from sweephand.errors import InvalidInput

__all__ = ["UNPACKED_BYTES_MAX", "check_zip", "contents", "digest_of", "zipped"]

UNPACKED_BYTES_MAX: Final = 256 * 1024 * 1024
FILES_MAX: Final = 20_000
NAME_CHARS_MAX: Final = 512

_EPOCH: Final = (1980, 1, 1, 0, 0, 0)
"""The first moment that a zip knows: when a file was written says nothing about what is in it."""
_METHODS: Final = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})
_ENCRYPTED: Final = 0x1
_CHUNK: Final = 1024 * 1024
_PATH: Final = "content"


def digest_of(content: bytes) -> str:
    """The name of a pack."""
    return hashlib.sha256(content).hexdigest()


def zipped(files: Mapping[str, bytes], *, deflated: frozenset[str] = frozenset()) -> bytes:
    """The same bytes from the same files, wherever and whenever they are packed.

    They are stored as they are, since compressors differ from machine to machine; but for those that are `deflated`.
    """
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        for name in sorted(files):
            about = zipfile.ZipInfo(name, _EPOCH)
            about.create_system = 3
            about.external_attr = (stat.S_IFREG | 0o644) << 16
            about.compress_type = zipfile.ZIP_DEFLATED if name in deflated else zipfile.ZIP_STORED
            archive.writestr(about, files[name])
    return written.getvalue()


def check_zip(content: bytes) -> None:
    """Refuses what is no zip, and what would not stay in its folder or in its bounds, as far as its list tells."""
    with _opened(content) as archive:
        _check(archive, len(content))


def contents(content: bytes) -> Iterator[tuple[str, Iterator[bytes]]]:
    """The files of a zip, each with its bytes, which are to be read before the next; what is wrong is refused."""
    with _opened(content) as archive:
        left = UNPACKED_BYTES_MAX
        for entry in _check(archive, len(content)):

            def chunks(entry: zipfile.ZipInfo = entry) -> Iterator[bytes]:
                nonlocal left
                try:
                    with archive.open(entry) as source:
                        while chunk := source.read(_CHUNK):
                            left -= len(chunk)
                            if left < 0:
                                raise InvalidInput(_too_much(), _PATH)
                            yield chunk
                except (zipfile.BadZipFile, EOFError, zlib.error) as error:
                    raise InvalidInput(f"Its file {entry.filename!r} is damaged: {error}.", _PATH) from error

            yield entry.filename, chunks()


def _opened(content: bytes) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(io.BytesIO(content))
    except (zipfile.BadZipFile, ValueError, OSError) as error:
        raise InvalidInput(f"It is no zip: {error}.", _PATH) from error


def _check(archive: zipfile.ZipFile, size: int) -> list[zipfile.ZipInfo]:
    """The files, none of which leaves the folder, and all of which fit into the bounds."""
    entries = archive.infolist()
    if len(entries) > FILES_MAX:
        raise InvalidInput(f"It has {len(entries):,} entries: {FILES_MAX:,} are the most.", _PATH)
    if sum(entry.file_size for entry in entries) > UNPACKED_BYTES_MAX:
        raise InvalidInput(_too_much(), _PATH)
    if sum(entry.compress_size for entry in entries) > size:
        raise InvalidInput("Its entries overlap.", _PATH)
    files: dict[str, zipfile.ZipInfo] = {}
    folders: set[str] = set()
    for entry in entries:
        wrong = _wrong(entry)
        if wrong or entry.filename in files:
            raise InvalidInput(f"Its entry {entry.filename[:128]!r} {wrong or 'is there twice'}.", _PATH)
        folders |= {str(parent) for parent in PurePosixPath(entry.filename).parents}
        if not entry.is_dir():
            files[entry.filename] = entry
    both = next((name for name in files if name in folders), None)
    if both is not None:
        raise InvalidInput(f"Its entry {both[:128]!r} is a file and a folder.", _PATH)
    return list(files.values())


def _wrong(entry: zipfile.ZipInfo) -> str | None:
    name = entry.filename
    parts = name.removesuffix("/").split("/")
    if entry.orig_filename != name or "\\" in name or not name.isprintable() or len(name) > NAME_CHARS_MAX:
        return "has a name that not every machine understands"
    if any(part in ("", ".", "..") for part in parts) or ":" in parts[0]:
        return "would not stay in its folder"
    kind = stat.S_IFMT(entry.external_attr >> 16)
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        return "is neither a file nor a folder"
    if entry.flag_bits & _ENCRYPTED:
        return "is encrypted"
    if entry.compress_type not in _METHODS:
        return "is compressed in a way that is not known here: store it, or deflate it"
    return None


def _too_much() -> str:
    return f"Unpacked it has more than {UNPACKED_BYTES_MAX:,} bytes."
