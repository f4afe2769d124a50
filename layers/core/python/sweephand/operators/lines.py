"""What a process writes, as lines: bounded in length, always text, with the time of their arrival."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from sweephand.logs import LINE_CHARS_MAX, Line, Stream
from sweephand.ports import Clock
from sweephand.secrets import Redactor

_BESIDE: Final = 4_096
"""Read of a long line beyond what is kept of it, so that nothing that is to be redacted is seen in part."""
_HELD_MAX: Final = LINE_CHARS_MAX + _BESIDE
_MARK_CHARS_MAX: Final = 48
"""What a cut line says of it."""
_MARK: Final = "\N{REPLACEMENT CHARACTER}"


class Lines:
    """Takes the bytes of both streams as they are read, in one thread, and hands their lines on in that order.

    `redact` sees whole lines, and those that arrived together at once; a line that was begun is handed on as it is when
    nothing has come for a moment, so that a prompt is seen, but for what may be the beginning of a secret.
    """

    def __init__(self, add: Callable[[Sequence[Line]], None], *, clock: Clock, redact: Redactor) -> None:
        self._add = add
        self._clock = clock
        self._redact = redact
        self._held = {stream: _Held() for stream in (Stream.STDOUT, Stream.STDERR)}

    @property
    def waits(self) -> bool:
        """Whether a line was begun and not handed on."""
        return any(held.data for held in self._held.values())

    def feed(self, stream: Stream, data: bytes) -> None:
        """These bytes came."""
        held = self._held[stream]
        end = data.rfind(b"\n")
        if end < 0:
            held.add(data)
            return
        first, newline, rest = data[:end].partition(b"\n")
        begun, dropped = held.add(first).take()
        if begun or not held.shown:
            self._tell(stream, begun + newline + rest, dropped, goes_on=held.shown)
        elif newline:  # what was begun was handed on, and nothing more came of it
            self._tell(stream, rest)
        held.shown = False
        held.add(data[end + 1 :])

    def idle(self) -> None:
        """Nothing came for a moment."""
        for stream, held in self._held.items():
            begun, dropped = held.take(_whole_characters(held.data))
            if begun:
                self._tell(stream, begun, dropped, goes_on=held.shown, is_whole=False)
                held.shown = True

    def end(self) -> None:
        """Nothing more will come."""
        for stream, held in self._held.items():
            begun, dropped = held.take()
            if begun:
                self._tell(stream, begun, dropped, goes_on=held.shown)

    def _tell(
        self, stream: Stream, data: bytes, dropped: int = 0, *, goes_on: bool = False, is_whole: bool = True
    ) -> None:
        """Lines without the end of the last; of the first, so many bytes were dropped. It may go on where another part
        was handed on, and the last may not be whole."""
        text, cut = text_of(data), ""
        if dropped:  # by itself: what was dropped may be the end of a secret, whose beginning is not for anybody either
            first, newline, text = text.partition("\n")
            cut, goes_on = self._redact(first, cut_before=goes_on, cut_after=True) + newline, False
        told = cut + self._redact(text, cut_before=goes_on, cut_after=not is_whole)
        now, texts = self._clock.now(), told.split("\n")
        texts[0] = _cut(texts[0], dropped)
        self._add([Line(now, stream, _cut(text).removesuffix("\r")) for text in texts])


class _Held:
    """The beginning of a line; of one that is too long, what was dropped is only counted."""

    __slots__ = ("data", "dropped", "shown")

    def __init__(self) -> None:
        self.data = bytearray()
        self.dropped = 0
        self.shown = False
        """Whether an earlier part of the line was handed on."""

    def add(self, data: bytes) -> _Held:
        room = max(_HELD_MAX - len(self.data), 0)
        self.data += data[:room]
        self.dropped += max(len(data) - room, 0)
        return self

    def take(self, size: int | None = None) -> tuple[bytes, int]:
        """What is held, or its first bytes, and what was dropped; neither is held any longer."""
        taken, dropped = bytes(self.data if size is None else self.data[:size]), self.dropped
        del self.data[: len(taken)]
        self.dropped = 0
        return taken, dropped


def text_of(data: bytes | bytearray) -> str:
    """With a mark for every byte that is no text."""
    return data.decode(errors="replace").replace("\0", _MARK)


def _cut(text: str, dropped: int = 0) -> str:
    if len(text) <= LINE_CHARS_MAX + _MARK_CHARS_MAX and not dropped:
        return text
    left_out = len(text[LINE_CHARS_MAX:].encode()) + dropped
    return f"{text[:LINE_CHARS_MAX]} … {left_out:,} bytes are left out"


def _whole_characters(data: bytearray) -> int:
    """Up to where no character is only begun."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte < 0x80:
            break
        if byte >= 0xC0:
            needed = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return len(data) - back if needed > back else len(data)
    return len(data)
