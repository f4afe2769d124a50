"""Job files: YAML 1.2, JSON and Python, read strictly and within bounds, with errors that name file and line."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final, NoReturn

from msgspec import Struct, field

from sweephand.cli.python_files import Needs, is_job_file, read_python
from sweephand.cli.show import visible
from sweephand.domain.plain import DEPTH_MAX, plain
from sweephand.errors import InvalidInput

__all__ = [
    "STDIN",
    "Errors",
    "Written",
    "found_in",
    "read_all",
    "read_each",
    "read_one",
    "shown_yaml",
    "strict_json",
    "to_yaml",
]

Errors = list[tuple[str, str]]
"""Where something is wrong, and what."""
Lines = Mapping[str, int]
"""The line of each path of a document, as far as they are known; '' is the document itself."""

STDIN: Final = "-"
FILE_BYTES_MAX: Final = 8_388_608
DOCUMENT_BYTES_MAX: Final = 4_194_304
"""With every alias written out; the server has its own, smaller limit for a job."""
FILES_MAX: Final = 10_000
_LINES_MAX: Final = 100_000
TOO_DEEP: Final = f"It is nested more than {DEPTH_MAX} levels deep."

_PYTHON: Final = ".py"
_ENDINGS: Final = frozenset({".yaml", ".yml", ".json"})
_CACHE: Final = "__pycache__"


class Written(Struct, frozen=True):
    """A document, and where somebody wrote it."""

    source: str
    document: dict[str, Any]
    file: str = ""
    lines: Callable[[], Lines] = field(default=dict)
    needs: Needs | None = None
    """What its functions are imported from, where it is written in Python."""

    def at(self, path: str) -> str:
        """A field of it as people find it: by its file and line, where that is known, and by its path."""
        lines, known = self.lines(), path
        while known and known not in lines:
            known = known[: max(known.rfind("."), known.rfind("["), 0)]
        where = f"{self.file}:{lines[known]}" if known in lines else self.source
        return f"{where}: {path}" if path else where


def found_in(names: Iterable[str]) -> list[str]:
    """The files to read: those named, and the job files of the folders named."""
    found: list[str] = []
    for name in names:
        path = Path(name)
        if name != STDIN and path.is_dir():
            inside = sorted(str(one) for one in path.rglob("*") if _is_job_file(one, path))
            if not inside:
                raise InvalidInput(f"{name} holds no job files (*.yaml, *.yml, *.json, and *.py with a @job).")
            found += inside
        else:
            found.append(name)
    if len(found) > FILES_MAX:
        raise InvalidInput(f"These are {len(found)} files, and {FILES_MAX} is the most at a time.")
    return list(dict.fromkeys(found))


def read_each(names: Iterable[str]) -> tuple[list[Written], Errors]:
    """The documents of these files and folders, and what is wrong in the others."""
    documents: list[Written] = []
    errors: Errors = []
    names = list(names)
    for name in found_in(names):
        try:
            documents += _read(name, is_named=name in names)
        except InvalidInput as refused:
            errors += refused.errors
    return documents, errors


def read_all(names: Iterable[str]) -> list[Written]:
    """The documents of these files and folders, or one refusal that lists what is wrong in all of them."""
    documents, errors = read_each(names)
    if errors:
        raise InvalidInput("Not every file can be read.", errors=tuple(errors))
    return documents


def read_one(name: str) -> dict[str, Any]:
    """The only document of a file."""
    documents = _read(name)
    if len(documents) != 1:
        _refuse(name, f"One document is wanted here, and there are {len(documents)}.")
    return documents[0].document


def strict_json(text: str) -> Any:
    """A value that can be sent on: json.JSONDecodeError where the text is no JSON, InvalidInput where JSON lacks it."""
    try:
        value = json.loads(text, parse_constant=_no_number)
        copied, errors = plain({"value": value}, bytes_max=DOCUMENT_BYTES_MAX)
    except RecursionError:
        raise InvalidInput(TOO_DEEP) from None
    except json.JSONDecodeError:
        raise
    except ValueError as error:
        raise InvalidInput(str(error)) from None
    if errors:
        raise InvalidInput(errors[0][1])
    return copied["value"]


def shown_yaml(document: object) -> str:
    """The same for people: what a terminal would obey or hide is an escape of YAML's own, so it still reads back."""
    text = to_yaml(document)
    is_plain = all(visible(line) == line for line in text.split("\n"))
    return (text if is_plain else to_yaml(document, in_ascii=True)).rstrip("\n")


def to_yaml(document: object, *, in_ascii: bool = False) -> str:
    """YAML 1.2 that reads back as the same document, its fields in the order that they have."""
    from ruamel.yaml import YAML

    yaml = YAML(typ="safe", pure=True)
    yaml.allow_unicode = not in_ascii
    yaml.default_flow_style = False
    yaml.sort_base_mapping_type_on_output = False  # type: ignore[assignment]  # it has no type of its own
    yaml.width = 120
    written = io.StringIO()
    yaml.dump(document, written)
    return written.getvalue()


def _is_job_file(path: Path, folder: Path) -> bool:
    parts = path.relative_to(folder).parts
    if any(part.startswith(".") or part == _CACHE for part in parts) or not path.is_file():
        return False
    if path.suffix == _PYTHON:
        return is_job_file(path, parts)
    # What lies beside a package's modules is what they read.
    return path.suffix.lower() in _ENDINGS and (path.parent == folder or not (path.parent / "__init__.py").exists())


def _read(name: str, *, is_named: bool = True) -> list[Written]:
    """A Python file of a folder may turn out to hold no job; one that is named is expected to."""
    if Path(name).suffix == _PYTHON:
        return _python(name, is_named=is_named)
    text = _text(name)
    is_json = name.lower().endswith(".json")
    loaded = list(_json(name, text) if is_json else _yaml(name, text))
    several = len(loaded) > 1
    written = []
    for n, one in enumerate(loaded):
        lines: Callable[[], Lines] = dict if is_json else partial(_lines, text, n)
        written.append(_plain(f"{name}#{n + 1}" if several else name, one, file=name, lines=lines))
    if not written:
        _refuse(name, "There is nothing in it.")
    return written


def _python(name: str, *, is_named: bool) -> list[Written]:
    jobs, needs = read_python(name)
    if not jobs and is_named:
        _refuse(name, "It makes no job: put @job before the function that calls the job's tasks.")
    several = len(jobs) > 1
    return [
        _plain(f"{name}#{n}" if several else name, one.document, file=name, lines=one.known_lines, needs=needs)
        for n, one in enumerate(jobs, 1)
    ]


def _text(name: str) -> str:
    ending = Path(name).suffix.lower()
    if name != STDIN and ending not in _ENDINGS:
        _refuse(name, "A job file ends in .yaml, .yml, .json or .py.")
    try:
        if name == STDIN:
            content = sys.stdin.buffer.read(FILE_BYTES_MAX + 1)
        else:
            with Path(name).open("rb") as file:
                content = file.read(FILE_BYTES_MAX + 1)
        text = content.decode("utf-8-sig")
    except OSError as error:
        _refuse(name, f"It cannot be read: {error.strerror}.")
    except UnicodeDecodeError:
        _refuse(name, "It is not UTF-8 text.")
    if len(content) > FILE_BYTES_MAX:
        _refuse(name, f"It is larger than {FILE_BYTES_MAX} bytes.")
    return text


def _plain(source: str, document: object, **about: Any) -> Written:
    """The document as JSON has it; a file's dates become text, and an endless document is refused."""
    if not isinstance(document, dict):
        _refuse(source, "A document is an object with fields, such as 'name'.")
    try:
        copied, errors = plain(document, bytes_max=DOCUMENT_BYTES_MAX)
    except InvalidInput as refused:
        errors, copied = refused.errors, {}
    if errors:
        raise InvalidInput(
            f"{source} cannot be used.", errors=tuple((_at(source, path), message) for path, message in errors)
        )
    return Written(source, copied, **about)


# JSON.


def _json(name: str, text: str) -> Iterator[object]:
    try:
        content = json.loads(text, object_pairs_hook=_distinct, parse_constant=_no_number)
    except json.JSONDecodeError as error:
        _refuse(name, f"It is not JSON: {error.msg}.", line=error.lineno)
    except RecursionError:
        _refuse(name, TOO_DEEP)
    except ValueError as error:
        _refuse(name, str(error))
    yield from content if isinstance(content, list) else [content]


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    read: dict[str, Any] = {}
    for key, value in pairs:
        if key in read:
            raise ValueError(f"The field {key!r} is there twice.")
        read[key] = value
    return read


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a number in JSON.")


# YAML.


def _yaml(name: str, text: str) -> Iterator[object]:
    from ruamel.yaml import YAML
    from ruamel.yaml.constructor import DuplicateKeyError
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    try:
        _check_size(name, text)
        for content in YAML(typ="safe", pure=True).load_all(text):
            if content is not None:
                yield from content if isinstance(content, list) else [content]
    except DuplicateKeyError as error:
        # Its text goes on with advice to programmers, after the first sentence.
        what = str(error.problem).partition(" with value ")[0].removeprefix("found duplicate key ")
        _refuse(name, f"The field {what} is there twice.", line=_line(error))
    except MarkedYAMLError as error:
        _refuse(name, f"It is not YAML: {error.problem or error.context}.", line=_line(error))
    except RecursionError:
        _refuse(name, TOO_DEEP)
    except (YAMLError, ValueError) as error:
        _refuse(name, f"It is not YAML: {' '.join(str(error).split())}.")


def _lines(text: str, number: int) -> Lines:
    """Where each field of a document is; asked only where something is wrong with one."""
    from ruamel.yaml import YAML
    from ruamel.yaml.nodes import MappingNode, SequenceNode

    documents: list[Any] = []
    for node in YAML(typ="safe", pure=True).compose_all(text):
        if node is not None:
            documents += node.value if isinstance(node, SequenceNode) else [node]
    lines: dict[str, int] = {}
    waiting = [("", documents[number], documents[number])]
    while waiting:
        path, where, node = waiting.pop()
        lines[path] = where.start_mark.line + 1
        if isinstance(node, MappingNode):
            waiting += [(f"{path}.{key.value}" if path else str(key.value), key, value) for key, value in node.value]
        elif isinstance(node, SequenceNode):
            waiting += [(f"{path}[{n}]", value, value) for n, value in enumerate(node.value)]
        if len(lines) > _LINES_MAX:
            break
    return lines


def _check_size(name: str, text: str) -> None:
    """Refuse what is too deep, or too large with its aliases written out, before anything is built of it."""
    from ruamel.yaml import YAML
    from ruamel.yaml.events import AliasEvent, CollectionEndEvent, CollectionStartEvent, DocumentStartEvent, ScalarEvent

    sizes: dict[str, int] = {}
    within: list[tuple[str | None, int]] = []
    for event in YAML(typ="safe", pure=True).parse(text):
        if isinstance(event, DocumentStartEvent):
            sizes, within = {}, [(None, 0)]
            continue
        if isinstance(event, CollectionStartEvent):
            within.append((event.anchor, 1))
            if len(within) > DEPTH_MAX + 1:
                _refuse(name, TOO_DEEP, line=event.start_mark.line + 1)
            continue
        if isinstance(event, AliasEvent):
            if event.anchor not in sizes:
                _refuse(name, f"*{event.anchor} names nothing that is complete.", line=event.start_mark.line + 1)
            anchor, size = None, sizes[event.anchor]
        elif isinstance(event, ScalarEvent):
            anchor, size = event.anchor, len(event.value) + 1
        elif isinstance(event, CollectionEndEvent):
            anchor, size = within.pop()
        else:
            continue
        if anchor is not None:
            sizes[anchor] = size
        around, before = within.pop()
        within.append((around, before + size))
        if before + size > DOCUMENT_BYTES_MAX:
            _refuse(name, f"With its aliases written out it takes more than {DOCUMENT_BYTES_MAX} bytes.")


def _line(error: Any) -> int | None:
    mark = error.problem_mark or error.context_mark
    return mark.line + 1 if mark is not None else None


def _at(source: str, path: str) -> str:
    return f"{source}: {path}" if path else source


def _refuse(source: str, message: str, *, line: int | None = None) -> NoReturn:
    raise InvalidInput(message, f"{source}:{line}" if line else source)
