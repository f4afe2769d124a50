"""Job files in Python: run in a process of their own, which tells their jobs; nothing of theirs is imported here."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from sweephand.errors import InvalidInput

__all__ = ["Needs", "Told", "is_job_file", "read_python"]

WITHIN_S: Final = 60
"""How long a file may take: it says what there is to do, and does none of it."""
_BYTES_MAX: Final = 64 * 1024 * 1024
_TAIL_CHARS: Final = 2_000
_REQUIREMENTS: Final = "requirements.txt"
_OURS: Final = "sweephand"
_NOT_TOLD: Final = ("SWEEPHAND_TOKEN",)
"""What a file has no use for."""


class Needs(Struct, frozen=True):
    """What a file's functions are imported from: modules of a folder, and what is locked beside them."""

    root: Path
    modules: tuple[str, ...]
    requirements: Path | None


class Told(Struct, frozen=True):
    """A job of a file, and the lines of its tasks."""

    document: dict[str, Any]
    lines: Mapping[str, int]

    def known_lines(self) -> Mapping[str, int]:
        return self.lines


def is_job_file(path: Path, parts: tuple[str, ...]) -> bool:
    """Whether a Python file of a folder makes jobs, as far as its imports tell: others are what these import."""
    if path.name.startswith("test_") or path.name == "conftest.py" or "tests" in parts:
        return False
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError):
        return False
    try:
        found = list(ast.walk(ast.parse(text)))
    except (SyntaxError, ValueError, RecursionError):
        return f"import {_OURS}" in text or f"from {_OURS}" in text  # told with its line, when it is read
    if any(isinstance(node, ast.Attribute) and node.attr == "job" and _is_ours(node.value) for node in found):
        return True
    return any(
        isinstance(node, ast.ImportFrom)
        and node.module in (_OURS, f"{_OURS}.dsl")
        and any(one.name in ("job", "*") for one in node.names)
        for node in found
    )


def _is_ours(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == _OURS


def read_python(name: str) -> tuple[list[Told], Needs]:
    """The jobs of a file, and what they need; or one refusal that lists what is wrong in it."""
    from sweephand.dsl.files import root_of

    file = Path(name)
    if not file.is_file():
        raise InvalidInput("It cannot be read: there is no such file.", name)
    told = _run(name, file.resolve())
    if "errors" in told:
        errors = tuple((_as_named(name, where), message) for where, message in told["errors"])
        raise InvalidInput(f"{name} cannot be used.", errors=errors)
    root, _ = root_of(file.resolve())
    jobs = [Told(one["document"], one["lines"]) for one in told["jobs"]]
    return jobs, Needs(root, tuple(told["modules"]), _locked_beside(file.resolve(), root))


def _run(name: str, file: Path) -> Any:
    environ = {variable: value for variable, value in os.environ.items() if variable not in _NOT_TOLD}
    # The same file says the same, however often it is run, and leaves nothing behind.
    environ |= {"PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
    with tempfile.TemporaryDirectory(prefix="sweephand-") as place, (Path(place) / "said").open("w+b") as said:
        result = Path(place) / "result"
        command = [sys.executable, "-P", "-m", "sweephand.dsl", str(file), str(result)]
        try:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                env=environ,
                timeout=WITHIN_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            late = f"It took longer than {WITHIN_S} seconds: a job file says what there is to do, and does none of it."
            raise InvalidInput(late, name) from None
        if done.returncode or not result.exists():
            said.seek(max(0, said.seek(0, os.SEEK_END) - _TAIL_CHARS))
            words = said.read().decode(errors="replace").strip()
            raise InvalidInput(f"It ended the process that read it ({done.returncode}): {words or 'no word'}", name)
        if result.stat().st_size > _BYTES_MAX:
            raise InvalidInput(f"Its jobs take more than {_BYTES_MAX:,} bytes.", name)
        return json.loads(result.read_text())


def _as_named(name: str, where: str) -> str:
    """A place in a file, as whoever named the file would name it."""
    path, colon, line = where.rpartition(":")
    if not line.isdecimal():
        path, colon, line = where, "", ""
    if Path(path) == Path(name).resolve():
        return f"{name}{colon}{line}"
    return f"{os.path.relpath(path)}{colon}{line}"


def _locked_beside(file: Path, root: Path) -> Path | None:
    """The list of packages in the file's folder, or in the next above it up to the root of its modules."""
    folder = file.parent
    while True:
        if (folder / _REQUIREMENTS).is_file():
            return folder / _REQUIREMENTS
        if folder == root:
            return None
        folder = folder.parent
