"""What people and programs see: tables, records and times for the one, JSON for the other."""

from __future__ import annotations

import json
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import IO, TYPE_CHECKING, Any, Final

from msgspec import Struct

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["Column", "Output", "at", "field", "local", "progress", "shown", "visible"]

Document = Mapping[str, Any]

NOTHING: Final = "-"
CELL_CHARS_MAX: Final = 60

_STYLES: Final = {
    "active": "green",
    "cancelled": "yellow",
    "create": "green",
    "change": "yellow",
    "failed": "bold red",
    "fired": "green",
    "missing": "bold red",
    "paused": "yellow",
    "queued": "blue",
    "retrying": "yellow",
    "running": "cyan",
    "skipped": "magenta",
    "succeeded": "green",
    "upstream_failed": "red",
}
_UNSEEN: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def visible(text: str) -> str:
    """The text with what a terminal would obey, or hide, written out: names and errors come from other people."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        char.encode("unicode_escape").decode() if unicodedata.category(char) in _UNSEEN else char for char in text
    )


def shown(value: object) -> str:
    """A value in a line of text."""
    if value is None or value in ("", [], {}):
        return NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return visible(", ".join(value))
    if isinstance(value, list | Mapping):
        return visible(json.dumps(value, ensure_ascii=False))
    return str(value)


def local(text: object) -> str:
    """A time of the API in the zone of this machine, with its offset from UTC."""
    if not isinstance(text, str):
        return NOTHING
    try:
        moment = datetime.fromisoformat(text).astimezone().isoformat(sep=" ", timespec="seconds")
    except (ValueError, OverflowError):
        return visible(text)
    return f"{moment[:19]} {moment[19:]}"


class Column(Struct, frozen=True):
    """A title, and the text of a row under it."""

    title: str
    text: Callable[[Document], str]


def field(name: str, title: str | None = None) -> Column:
    """A field as it is; `a.b` is the field b of the object a."""
    return Column(title or name.upper(), lambda row: shown(_deep(row, name)))


def at(name: str, title: str) -> Column:
    """A field that is a time."""
    return Column(title, lambda row: local(_deep(row, name)))


def _deep(row: Document, name: str) -> Any:
    value: Any = row
    for part in name.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


class Output:
    """Standard output: coloured tables on a terminal, plain columns in a pipe, one JSON document with `--json`."""

    def __init__(self, file: IO[str], *, as_json: bool, is_terminal: bool) -> None:
        self.as_json = as_json
        self._file = file
        self._is_terminal = is_terminal

    def json(self, document: object) -> None:
        """The one document of this call."""
        # ASCII: a control character of somebody's text stays an escape, and any encoding can carry it.
        self._line(json.dumps(document, indent=2))

    def rows(self, rows: Iterable[Document], columns: Sequence[Column], *, none: str) -> None:
        """A list: an array, or a table; `none` is the sentence where it is empty."""
        listed = [*rows]
        if self.as_json:
            self.json(listed)
        elif not listed:
            self.say(none)
        else:
            self._table([[column.text(row) for column in columns] for row in listed], [one.title for one in columns])

    def record(self, document: Document, columns: Sequence[Column]) -> None:
        """One thing: an object, or a line for each of its fields that says something."""
        if self.as_json:
            self.json(document)
            return
        told = [(column.title.lower(), text) for column in columns if (text := column.text(document)) != NOTHING]
        width = max((len(title) for title, _ in told), default=0)
        for title, text in told:
            self.say(f"{title:<{width}}  {text}")

    def answer(self, document: Document | None, sentence: str) -> None:
        """What came of a call: its answer for programs, a sentence for people."""
        if self.as_json:
            self.json(document or {})
        else:
            self.say(sentence)

    def say(self, text: str, style: str = "") -> None:
        """A line for people; nothing with `--json`."""
        if self.as_json:
            return
        if not self._is_terminal:
            self._line(text)
            return
        from rich.text import Text

        words = text.split(" ")
        styled = Text(text, style=style)
        if not style and words[-1] in _STYLES:
            styled.stylize(_STYLES[words[-1]], len(text) - len(words[-1]))
        self._console().print(styled, soft_wrap=True)

    def _table(self, rows: list[list[str]], titles: list[str]) -> None:
        if not self._is_terminal:
            widths = [max(map(len, column)) for column in zip(titles, *rows, strict=True)]
            for row in [titles, *rows]:
                self._line("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip())
            return
        from rich.box import SIMPLE_HEAD
        from rich.table import Table
        from rich.text import Text

        table = Table(box=SIMPLE_HEAD, pad_edge=False, header_style="bold")
        for title in titles:
            table.add_column(title, overflow="fold")
        for row in rows:
            table.add_row(*(Text(_cut(cell), style=_STYLES.get(cell, "")) for cell in row))
        self._console().print(table)

    def _console(self) -> Console:
        from rich.console import Console

        return Console(file=self._file, force_terminal=True, highlight=False, markup=False, emoji=False)

    def _line(self, text: str) -> None:
        self._file.write(text + "\n")


def _cut(text: str) -> str:
    return text if len(text) <= CELL_CHARS_MAX else text[: CELL_CHARS_MAX - 1] + "…"


@contextmanager
def progress(title: str, total: float | None) -> Iterator[Callable[[float], None]]:
    """A bar on standard error while something long goes on, told how far it is; silent where nobody looks."""
    if not sys.stderr.isatty():
        yield lambda _done: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn

    columns = SpinnerColumn(), TextColumn("{task.description}", markup=False), BarColumn()
    console = Console(stderr=True)
    with Progress(*columns, TaskProgressColumn(), TimeElapsedColumn(), console=console, transient=True) as bar:
        task = bar.add_task(visible(title), total=total)
        yield lambda done: bar.update(task, completed=done)
