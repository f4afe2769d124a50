"""The console, as it was built into the folder beside this: files for browsers, and one document for all its pages."""

from __future__ import annotations

import gzip
import json
import posixpath
import re
from hashlib import blake2b
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from msgspec import Struct

from sweephand.local.answers import Answer
from sweephand.local.gateway import Request

FOLDER: Final = Path(__file__).parent / "site"
DOCUMENT: Final = "index.html"
CONFIG: Final = "/config.json"
NOT_BUILT: Final = "The console was not built: `make console` builds it.\n"

POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; worker-src 'self'; manifest-src 'self'; frame-ancestors 'none'; base-uri 'none'; "
    "form-action 'none'"
)
PERMISSIONS: Final = "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()"

_STRICT: Final = (
    ("content-security-policy", POLICY),
    ("cross-origin-opener-policy", "same-origin"),
    ("permissions-policy", PERMISSIONS),
)
"""Beside what every answer has."""
_FOR_EVER: Final = "public, max-age=31536000, immutable"
"""The names of assets hold a hash of what is in them."""
_ASK_AGAIN: Final = "no-cache"
_TEXT: Final = "text/plain; charset=utf-8"
_BINARY: Final = "application/octet-stream"
_TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".ico": "image/x-icon",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": _TEXT,
    ".webmanifest": "application/manifest+json",
    ".webp": "image/webp",
    ".woff2": "font/woff2",
}
_PACKED: Final = frozenset({".css", ".html", ".js", ".json", ".svg", ".txt", ".webmanifest"})
_PACKED_FROM: Final = 1_024
_FILES_MAX: Final = 500

_OTHERS: Final = re.compile(r"/(api|live)", re.IGNORECASE)
"""What is behind the gateway, and where connections listen."""
_SEGMENT: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")
_SEGMENTS_MAX: Final = 4
_PAGE: Final = re.compile(r"(^|[\s,])text/html\s*(,|;(?!\s*q=0(\.0*)?\s*(,|$))|$)", re.IGNORECASE)
_GZIP: Final = re.compile(r"(^|[\s,])gzip\s*(,|;(?!\s*q=0(\.0*)?\s*(,|$))|$)", re.IGNORECASE)


class _File(Struct, frozen=True):
    """A file as it was when it was read."""

    stamp: tuple[int, int]
    content: bytes
    tag: str
    packed: bytes | None

    @classmethod
    def of(cls, content: bytes, suffix: str, stamp: tuple[int, int] = (0, 0)) -> _File:
        packs = suffix in _PACKED and len(content) >= _PACKED_FROM
        tag = blake2b(content, digest_size=12).hexdigest()
        return cls(stamp, content, tag, gzip.compress(content, mtime=0) if packs else None)


class Site:
    """What a browser asks for that is not the API. Files that are built anew are found; threads may share it."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self._folder = folder.resolve()
        self._config = _File.of(json.dumps({"signIn": None}).encode(), ".json")
        self._read: dict[Path, _File] = {}

    def is_for(self, request: Request) -> bool:
        """Whether a request is none of the API's, in whatever form its path is written."""
        if request.method not in {"GET", "HEAD"} or not request.path.startswith("/"):
            return False
        plain = posixpath.normpath(re.sub(r"[/\\]+", "/", unquote(request.path)))
        return not _OTHERS.match(plain)

    def answer(self, request: Request) -> Answer | None:
        """A file, or the document where a page is asked for; None where there is neither."""
        path = unquote(request.path)
        if path == CONFIG:
            return _answered(request, self._config, ".json", _ASK_AGAIN)
        if file := self._file(path):
            suffix = posixpath.splitext(path)[1].lower()
            return _answered(request, file, suffix, _FOR_EVER if path.startswith("/assets/") else _ASK_AGAIN)
        if not _PAGE.search(request.header("accept") or ""):
            return None
        if document := self._file(f"/{DOCUMENT}"):
            return _answered(request, document, ".html", _ASK_AGAIN)
        return Answer(503, (("content-type", _TEXT), *_STRICT), NOT_BUILT.encode())

    def _file(self, path: str) -> _File | None:
        """The file of a path; names that could lead elsewhere, or are hidden, have none."""
        segments = path.removeprefix("/").split("/")
        if len(segments) > _SEGMENTS_MAX or not all(map(_SEGMENT.fullmatch, segments)):
            return None
        place = self._folder.joinpath(*segments)
        if not place.is_file() or not place.resolve().is_relative_to(self._folder):
            return None
        try:
            return self._current(place)
        except FileNotFoundError:
            return None  # it has just been built anew, under another name

    def _current(self, place: Path) -> _File:
        """What is in the file now, read again only where it changed."""
        status = place.stat()
        stamp, known = (status.st_mtime_ns, status.st_size), self._read.get(place)
        if known is not None and known.stamp == stamp:
            return known
        if len(self._read) >= _FILES_MAX:
            self._read.clear()  # of builds before this one
        file = self._read[place] = _File.of(place.read_bytes(), place.suffix.lower(), stamp)
        return file


def _answered(request: Request, file: _File, suffix: str, caching: str) -> Answer:
    """The file, packed for those who can unpack it; nothing for those who have it."""
    packs = file.packed is not None and _GZIP.search(request.header("accept-encoding") or "") is not None
    tag = f'"{file.tag}-gzip"' if packs else f'"{file.tag}"'
    headers = [
        ("cache-control", caching),
        ("etag", tag),
        *([("vary", "accept-encoding")] if file.packed is not None else []),
        *_STRICT,
    ]
    if tag in re.split(r"\s*,\s*(?:W/)?", (request.header("if-none-match") or "").strip().removeprefix("W/")):
        return Answer(304, tuple(headers), b"")
    kind = [("content-type", _TYPES.get(suffix, _BINARY)), *([("content-encoding", "gzip")] if packs else [])]
    body = file.packed if packs and file.packed is not None else file.content
    return Answer(200, (*kind, *headers), body)
