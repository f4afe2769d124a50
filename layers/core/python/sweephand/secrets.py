"""Secrets: the port that keeps their values sealed, and the redactor that takes them out of what tasks say."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, Protocol
from urllib.parse import quote, quote_plus

from msgspec import Struct, field

from sweephand.domain.ids import Namespace
from sweephand.domain.secret import VALUE_CHARS_MIN, Elsewhere

MARK: Final = "•••"
"""What stands where a value was."""
_LINE_CHARS_MIN: Final = 8
_INSIDE_CHARS_MIN: Final = 8
_EDGE_CHARS_MIN: Final = 3
_WIDTHS: Final = (64, 76)
"""How long the lines are that programs break base64 into: openssl and PEM, base64 and MIME."""

Bound = Mapping[str, str]
"""What a sealed text is for: it opens for nothing else."""


def secret_of(namespace: Namespace, name: str) -> Bound:
    """What the value of a secret is bound to: moved to another name or namespace, it does not open."""
    return {"sweephand": "secret", "namespace": namespace, "secret": name}


def order_of(run: str, epoch: int) -> Bound:
    """What the secrets of one attempt are bound to, on their way through a store that keeps what it passes on."""
    return {"sweephand": "order", "run": f"{run}/{epoch}"}


class Secrets(Protocol):
    """Seals texts for the tables, and opens them. Each call may raise `Unavailable`."""

    def seal(self, text: str, bound_to: Bound) -> str:
        """The text as only `unseal` can read it."""

    def unseal(self, sealed: str, bound_to: Bound) -> str | None:
        """The text; None where its key is gone, or where it was sealed for something else."""

    def fetch(self, namespace: Namespace, place: Elsewhere) -> str | None:
        """The value of a secret that AWS keeps; None where there is none, `Refused` where it may not be read."""


class Values(Struct, frozen=True):
    """The values of an attempt's secrets, by the names that its task gives them. They are in no `repr`."""

    by_name: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"Values({', '.join(self.by_name)})"


NOTHING: Final = Values()


def wrapped(text: str, bound_to: Bound) -> bytes:
    """What is encrypted: the text with what it is for, so that one is not without the other."""
    return json.dumps([dict(sorted(bound_to.items())), text], ensure_ascii=False).encode()


def unwrapped(content: bytes, bound_to: Bound) -> str | None:
    """The text, if it is for this."""
    found, text = json.loads(content)
    return str(text) if found == dict(bound_to) else None


class Redactor:
    """Replaces every value, as it is and as it looks in base64, URLs, JSON and Python; each line of a longer one too.

    So it does what is left of one without the white space around it, which a file's last line has.

    A value of fewer than four characters is left: it would be found in every other word. What a task does to a value
    itself, such as turning it round, is not recognised.
    """

    def __init__(self, values: Iterable[str] = ()) -> None:
        forms = {form for value in values if len(value) >= VALUE_CHARS_MIN for form in _forms(value)}
        self._forms = sorted(forms, key=len, reverse=True)

    def __bool__(self) -> bool:
        return bool(self._forms)

    def __call__(self, text: str, *, cut_before: bool = False, cut_after: bool = False) -> str:
        """The text without the values; where it was cut, also without what the cut left of one."""
        spans = sorted(self._spans(text, cut_before=cut_before, cut_after=cut_after))
        pieces, done = [], 0
        for start, end in spans:
            if end <= done:
                continue
            if start >= done:
                pieces += [text[done:start], MARK]
            done = end
        return "".join([*pieces, text[done:]]) if spans else text

    def document(self, value: Any) -> Any:
        """The same for every text in a document, its fields' names, and its numbers."""
        if not self._forms:
            return value
        if isinstance(value, str):
            return self(value)
        if isinstance(value, Mapping):
            return {self(str(name)): self.document(item) for name, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.document(item) for item in value]
        if isinstance(value, int | float) and not isinstance(value, bool):
            shown = json.dumps(value)
            return value if self(shown) == shown else MARK
        return value

    def _spans(self, text: str, *, cut_before: bool, cut_after: bool) -> Iterator[tuple[int, int]]:
        for form in self._forms:
            at = text.find(form)
            while at >= 0:
                yield at, at + len(form)
                at = text.find(form, at + len(form))
            if cut_before and len(text) >= _EDGE_CHARS_MIN:
                for at in _places(form, text[:_EDGE_CHARS_MIN]):
                    if text.startswith(form[at:]) or form.startswith(text, at):
                        yield 0, min(len(form) - at, len(text))
                        break
            if cut_after and len(text) >= _EDGE_CHARS_MIN:
                for at in _places(text, form[:_EDGE_CHARS_MIN], max(0, len(text) - len(form))):
                    if form.startswith(text[at:]):
                        yield at, len(text)
                        break


def _places(text: str, part: str, start: int = 0) -> Iterator[int]:
    at = text.find(part, start)
    while at >= 0:
        yield at
        at = text.find(part, at + 1)


def _forms(value: str) -> Iterator[str]:
    for text in {value, value.strip(), *(line.strip() for line in value.splitlines())}:
        if len(text) >= (_LINE_CHARS_MIN if text not in (value, value.strip()) else VALUE_CHARS_MIN):
            yield text
            yield from (json.dumps(text, ensure_ascii=only)[1:-1] for only in (True, False))
            yield repr(text)[1:-1]
    for text in {value, value.strip()}:
        if len(text) < VALUE_CHARS_MIN:
            continue
        yield from (quote_plus(text), *(quote(text, safe=safe) for safe in ("", "/", "!'()*~")))
        for standard in _in_base64(text.encode()):
            yield standard
            yield standard.replace("+", "-").replace("/", "_")


def _in_base64(content: bytes) -> Iterator[str]:
    """By itself, and inside of something longer, which may begin at any of three places."""
    yield b64encode(content).decode().rstrip("=")
    for before in range(3):
        encoded = b64encode(bytes(before) + content).decode().rstrip("=")
        inside = encoded[-(-before * 8 // 6) : (before + len(content)) * 8 // 6]
        if len(inside) >= _INSIDE_CHARS_MIN:
            yield inside
        if not before:
            yield from (line for width in _WIDTHS for line in _wrapped(inside, width))


def _wrapped(encoded: str, width: int) -> Iterator[str]:
    """The lines that a longer one is broken into."""
    lines = [encoded[at : at + width] for at in range(0, len(encoded), width)] if len(encoded) > width else []
    return (line for line in lines if len(line) >= _INSIDE_CHARS_MIN)
