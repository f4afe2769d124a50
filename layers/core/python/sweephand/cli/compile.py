"""`sweephand compile`: what job files say, Python ones too, as plain files that a scan takes; no server is asked."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import click

from sweephand.cli.apply import Packing, distinct
from sweephand.cli.documents import STDIN, Written, read_each
from sweephand.cli.program import program
from sweephand.cli.session import Session, pass_session
from sweephand.clock import SystemClock
from sweephand.domain.definition import parse
from sweephand.domain.ids import check_name
from sweephand.errors import Conflict, InvalidInput
from sweephand.packs import ON_LAMBDA, Platform

JOBS: Final = "jobs"
CODE: Final = "code"
LIST: Final = "compiled.json"
"""What was written, so that the next call removes what no file says any more, and nothing else."""

_TARGETS: Final[Mapping[str, Platform]] = {
    "here": Platform(f"{sys.version_info.major}.{sys.version_info.minor}"),
    "aws": ON_LAMBDA,
}

Files = Mapping[str, bytes]
"""By their paths beneath the folder."""


@program.command(example="sweephand compile jobs/ --to out/ --for aws")
@click.argument("files", nargs=-1, required=True, metavar="FILE|DIR...", type=click.Path())
@click.option("--to", "folder", required=True, metavar="OUT", type=click.Path(file_okay=False, path_type=Path))
@click.option("--for", "target", type=click.Choice([*_TARGETS]), default="here", help="Where the code is to run.")
@click.option("--no-check", is_flag=True, help="Leave it to whoever scans the files to check the definitions.")
@click.option("--force", is_flag=True, help="Overwrite files that say something else.")
@pass_session
def compile(session: Session, files: tuple[str, ...], folder: Path, target: str, no_check: bool, force: bool) -> None:
    """Write the jobs of these files to OUT/jobs as JSON, and the code of Python ones to OUT/code as zips.

    OUT/jobs is what `sweephand up --jobs` and the prefix jobs/NAMESPACE/ on AWS scan, and OUT/code goes to the prefix
    code/NAMESPACE/, or to `sweephand code put`. What is wrong in any file writes nothing; what was written before and
    is no longer said is removed.
    """
    _check_apart(files, folder)
    written, errors = read_each(files)
    platform = _TARGETS[target]
    packing = Packing(lambda: {"python": platform.python, "wheels": list(platform.wheels)})
    made: dict[str, bytes] = {}
    for one in distinct(written, errors):
        try:
            made |= _compiled(one, packing, is_checked=not no_check)
        except InvalidInput as refused:
            errors += [(one.at(path), text) for path, text in refused.errors]
    if errors:
        raise InvalidInput("Nothing was written.", errors=tuple(dict.fromkeys(errors)))
    removed = _write(folder, made, force=force)
    answer = {"files": sorted(made), "removed": removed}
    packs = sum(name.startswith(CODE) for name in made)
    lost = f"; removed {len(removed)} files" if removed else ""
    jobs = f"{len(made) - packs} {'job' if len(made) - packs == 1 else 'jobs'}"
    code = f" and {packs} {'pack' if packs == 1 else 'packs'} of code" if packs else ""
    session.output.answer(answer, f"Wrote {jobs}{code} to {folder}{lost}.")


def _check_apart(files: Iterable[str], folder: Path) -> None:
    """Refuse to write where the next call would read."""
    for name in files:
        if name != STDIN and Path(name).is_dir() and folder.resolve().is_relative_to(Path(name).resolve()):
            raise click.UsageError(f"--to {folder} is within {name}: what is written there would be read as job files.")


def _compiled(one: Written, packing: Packing, *, is_checked: bool) -> Files:
    """The job's file, and the pack of its code."""
    packed, pack = packing.packed(one)
    name = check_name(packed.document.get("name"), path="name")
    if is_checked and "template" not in packed.document:
        from sweephand.operators.plugins import Plugins, Steps  # late: it looks for what is installed

        parse(packed.document, namespace="default", now=SystemClock().now(), operators=Steps({}, Plugins()))
    text = json.dumps(packed.document, ensure_ascii=False, indent=2) + "\n"
    code = {f"{CODE}/{pack.digest}.zip": pack.content} if pack is not None else {}
    return {f"{JOBS}/{name}.json": text.encode(), **code}


def _write(folder: Path, made: Files, *, force: bool) -> list[str]:
    """Write what differs, code before jobs; the files that were written before and are not any more, which are gone."""
    try:
        before = _listed(folder)
        for name, content in made.items():
            _check_free(folder / name, content, is_own=force or name in before)
        for name in sorted(made):
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if not path.exists() or path.read_bytes() != made[name]:
                path.write_bytes(made[name])
        gone = sorted(name for name in before - made.keys() if (folder / name).exists())
        for name in gone:
            (folder / name).unlink()
        (folder / LIST).write_text(json.dumps({"files": sorted(made)}, indent=2) + "\n")
    except OSError as error:
        raise InvalidInput(f"{error.filename or folder} cannot be written: {error.strerror}.") from None
    return gone


def _check_free(path: Path, content: bytes, *, is_own: bool) -> None:
    if not is_own and path.exists() and path.read_bytes() != content:
        raise Conflict(f"{path} is there and says something else: --force overwrites it.")


def _listed(folder: Path) -> set[str]:
    """What was written here before, of what this command writes."""
    try:
        told: Any = json.loads((folder / LIST).read_text())
        names = {str(name) for name in told["files"]}
    except FileNotFoundError:
        return set()
    except (ValueError, KeyError, TypeError):
        raise InvalidInput(f"{folder / LIST} does not list what was compiled: name another folder.") from None
    return {name for name in names if name.count("/") == 1 and (_is(name, JOBS, ".json") or _is(name, CODE, ".zip"))}


def _is(name: str, folder: str, ending: str) -> bool:
    return name.startswith(f"{folder}/") and name.endswith(ending)
