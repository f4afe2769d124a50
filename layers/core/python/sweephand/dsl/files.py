"""A Python job file, run in this process: its jobs as documents, and which modules of its folder they need."""

from __future__ import annotations

import importlib
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from sweephand.dsl.jobs import Job, made_by
from sweephand.errors import InvalidInput

__all__ = ["compiled", "root_of"]

_PACKAGE: Final = "__init__.py"


def root_of(file: Path) -> tuple[Path, str]:
    """The folder that a file's modules are imported from, and its own name there: a package's file is one of it."""
    names = [] if file.name == _PACKAGE else [file.stem]
    folder = file.parent
    while (folder / _PACKAGE).exists():
        names.insert(0, folder.name)
        folder = folder.parent
    return folder, ".".join(names)


def compiled(file: Path) -> dict[str, Any]:
    """What the file says, or all that is wrong in it, each error with its file and line. It is imported for that."""
    file = file.resolve()
    root, name = root_of(file)
    sys.path.insert(0, str(root))
    try:
        if "." in file.stem:
            raise InvalidInput(
                "A Python file's name has no dot before its ending: it could not be imported.", str(file)
            )
        module = importlib.import_module(name)
        if Path(module.__file__ or "").resolve() != file:
            raise InvalidInput(f"There is a module '{name}' already: give the file another name.", str(file))
    except BaseException as error:  # noqa: BLE001 - whatever it raises is what is wrong with it
        return {"errors": [*_errors(error, root, file)]}
    jobs: list[dict[str, Any]] = []
    errors: list[list[str]] = []
    for job in made_by(str(file)):
        try:
            jobs.append(_written(job))
        except Exception as error:  # noqa: BLE001 - a body is the user's code too
            errors += _errors(error, root, file)
    if errors:
        return {"errors": errors}
    return {"jobs": jobs, "modules": sorted(_imported_from(root))}


def _written(job: Job) -> dict[str, Any]:
    document = job.document()
    return {"document": document, "lines": {"": job.where.line, **job.lines}}


def _imported_from(root: Path) -> Iterator[str]:
    """The top-level modules that came from the folder."""
    for name, module in list(sys.modules.items()):
        origin = getattr(module, "__file__", None)
        if "." not in name and origin and Path(origin).parent in (root, root / name):
            yield name
        elif "." not in name and origin is None and (root / name).is_dir():
            yield name  # a package without a file of its own


def _errors(error: BaseException, root: Path, file: Path) -> Iterator[list[str]]:
    """Where, and what."""
    if isinstance(error, InvalidInput):
        yield from ([path or str(file), message] for path, message in error.errors)
    elif isinstance(error, SyntaxError):
        yield [f"{error.filename or file}:{error.lineno or 1}", f"It is not Python: {error.msg}."]
    else:
        frames = traceback.extract_tb(error.__traceback__)
        own = [frame for frame in frames if Path(frame.filename).is_relative_to(root)]
        where = f"{own[-1].filename}:{own[-1].lineno}" if own else str(file)
        said = str(error)
        yield [where, f"{type(error).__name__}: {said}" if said else f"It raised {type(error).__name__}."]
