"""What the functions of a Python job file need, in one zip: the file, what it imports of its folder, and wheels."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from sweephand.cli.python_files import Needs
from sweephand.domain.zips import FILES_MAX, digest_of, zipped
from sweephand.errors import InvalidInput
from sweephand.packs import PACK_BYTES_MAX, Pack

__all__ = ["Packer", "with_code"]

PIP_WITHIN_S: Final = 900
_PACKAGE_FOLDERS_LEFT_OUT: Final = frozenset({"__pycache__", "tests", "test", "node_modules"})
_MADE_BY_PIP: Final = frozenset({"RECORD", "REQUESTED", "INSTALLER", "direct_url.json"})
"""Files that tell about an installation, and not about what is installed: they differ from one to the next."""
_PINNED: Final = re.compile(r"^\s*[A-Za-z0-9]")
_SAID_CHARS: Final = 1_500


class Packer:
    """Packs for a target, each set of modules once; what the target is, is asked when something needs wheels."""

    def __init__(self, target: Callable[[], Mapping[str, Any]]) -> None:
        self._target = target
        self._packs: dict[Needs, Pack] = {}
        self._wheels: dict[Path, dict[str, bytes]] = {}

    def pack(self, needs: Needs) -> Pack:
        """The pack of what a file needs: the same bytes as long as none of that changes."""
        if needs not in self._packs:
            files = modules_of(needs.root, needs.modules)
            wheels = self._wheels_of(needs.requirements) if needs.requirements else {}
            twice = sorted(files.keys() & wheels.keys())
            if twice:
                raise InvalidInput(
                    f"{twice[0]} is here and in a package of {_shown(needs.requirements)}: rename one of them.",
                    _shown(needs.root),
                )
            content = zipped({**wheels, **files}, deflated=frozenset(wheels))
            if len(content) > PACK_BYTES_MAX:
                largest = max({**wheels, **files}.items(), key=lambda one: len(one[1]))
                raise InvalidInput(
                    f"The code takes {len(content):,} bytes, and {PACK_BYTES_MAX:,} are the most; the largest file is "
                    f"{largest[0]}, of {len(largest[1]):,}.",
                    _shown(needs.root),
                )
            self._packs[needs] = Pack(digest_of(content), content)
        return self._packs[needs]

    def _wheels_of(self, requirements: Path) -> dict[str, bytes]:
        if requirements not in self._wheels:
            self._wheels[requirements] = installed(requirements, self._target())
        return self._wheels[requirements]


def with_code(document: dict[str, Any], needs: Needs, pack: Pack) -> dict[str, Any]:
    """The document with the pack's name at each function that is imported from it."""

    def named(task: dict[str, Any]) -> dict[str, Any]:
        run = task["run"]
        if not is_packed(run, needs) or "code" in run:
            return task
        return {**task, "run": {**run, "code": pack.digest}}

    return {**document, "tasks": [named(task) for task in document["tasks"]]}


def has_packed(document: Mapping[str, Any], needs: Needs) -> bool:
    """Whether a step of a document does; one that is made of a template may have no task of its own."""
    return any(is_packed(task["run"], needs) for task in document.get("tasks") or ())


def is_packed(run: Mapping[str, Any], needs: Needs) -> bool:
    """Whether a step's function comes from a pack: of a module of the folder, or of a package beside it."""
    function = run.get("python")
    if not isinstance(function, str):
        return False
    return function.partition(":")[0].partition(".")[0] in needs.modules or needs.requirements is not None


def _shown(path: Path | None) -> str:
    """As somebody in this folder would name it."""
    return os.path.relpath(path) if path is not None else ""


# Modules.


def modules_of(root: Path, first: Iterable[str]) -> dict[str, bytes]:
    """The files of these top-level modules, and of those of the folder that they import, be it within a function."""
    files: dict[str, bytes] = {}
    waiting, seen = list(first), set[str]()
    while waiting:
        module = waiting.pop()
        if module in seen:
            continue
        seen.add(module)
        for path in _files_of(root, module):
            name = path.relative_to(root).as_posix()
            files[name] = path.read_bytes()
            if len(files) > FILES_MAX:
                raise InvalidInput(f"The code has more than {FILES_MAX:,} files.", _shown(root))
            if path.suffix == ".py":
                waiting += [one for one in _imported(files[name]) if one not in seen]
    return files


def _files_of(root: Path, module: str) -> Iterator[Path]:
    """A module's file, or all of a package's: it may read others than modules."""
    file, folder = root / f"{module}.py", root / module
    if file.is_file():
        yield _within(root, file)
        return
    if not folder.is_dir() or not any(folder.rglob("*.py")):
        return
    for here, folders, names in os.walk(folder):
        folders[:] = sorted(one for one in folders if _is_wanted_folder(Path(here) / one))
        for name in sorted(names):
            if _is_wanted_file(name):
                yield _within(root, Path(here) / name)


def _is_wanted_folder(path: Path) -> bool:
    name = path.name
    if name.startswith(".") or name in _PACKAGE_FOLDERS_LEFT_OUT or name.endswith((".egg-info", ".dist-info")):
        return False
    return not path.is_symlink() and not (path / "pyvenv.cfg").exists()


def _is_wanted_file(name: str) -> bool:
    is_test = name.endswith(".py") and (name.startswith("test_") or name.endswith("_test.py") or name == "conftest.py")
    return not (name.startswith(".") or name.endswith((".pyc", ".pyo")) or is_test)


def _within(root: Path, path: Path) -> Path:
    if not path.resolve().is_relative_to(root) or not path.is_file():
        raise InvalidInput("It is a link out of the folder, and cannot be packed.", _shown(path))
    return path


def _imported(content: bytes) -> Iterator[str]:
    """The top-level names that a module imports; which of them are of the folder, the folder tells."""
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError, RecursionError):
        return  # whoever imports it is told
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (one.name.partition(".")[0] for one in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            yield node.module.partition(".")[0]


# Packages.


def installed(requirements: Path, target: Mapping[str, Any]) -> dict[str, bytes]:
    """The files of the packages that a lock lists, from wheels for the target's platform, each checked by its hash."""
    if not _check_locked(requirements):
        return {}
    own = f"{sys.version_info.major}.{sys.version_info.minor}"
    python, wheels = str(target.get("python") or own), target.get("wheels") or ()
    platform = [word for one in wheels for word in ("--platform", str(one))]
    if platform or python != own:
        platform += ["--python-version", python, "--implementation", "cp"]
    with tempfile.TemporaryDirectory(prefix="sweephand-wheels-") as place:
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"]
        command += ["--no-compile", "--no-deps", "--only-binary", ":all:", "--require-hashes", *platform]
        command += ["--target", place, "--requirement", str(requirements)]
        try:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PIP_WITHIN_S, check=False
            )
        except subprocess.TimeoutExpired:
            raise InvalidInput(f"pip took longer than {PIP_WITHIN_S} seconds.", _shown(requirements)) from None
        if done.returncode:
            said = (done.stderr or done.stdout).strip()[-_SAID_CHARS:]
            where = f" for Python {python} on {', '.join(map(str, wheels))}" if wheels else ""
            raise InvalidInput(f"pip cannot install its wheels{where}: {said}", _shown(requirements))
        return {name: path.read_bytes() for name, path in _of_wheels(Path(place))}


def _of_wheels(place: Path) -> Iterator[tuple[str, Path]]:
    for path in sorted(place.rglob("*")):
        relative = path.relative_to(place)
        is_about = relative.parts[0].endswith(".dist-info") and path.name in _MADE_BY_PIP
        if path.is_file() and relative.parts[0] != "bin" and "__pycache__" not in relative.parts and not is_about:
            yield relative.as_posix(), path


def _check_locked(requirements: Path) -> bool:
    """Whether there is anything in it; refused where something has no hash, which could be something else tomorrow."""
    found, begun, entry = False, 0, ""
    for number, line in enumerate(requirements.read_text().splitlines(), 1):
        begun = begun if entry else number
        entry += line.rstrip("\\")
        if line.endswith("\\"):
            continue
        if _PINNED.match(entry):
            found = True
            if "--hash=" not in entry:
                raise InvalidInput(
                    f"{entry.split()[0]} has no hash: lock the file, as `uv pip compile --generate-hashes` does: else "
                    "other packages may be packed tomorrow.",
                    f"{_shown(requirements)}:{begun}",
                )
        entry = ""
    return found
