"""Job files in a folder: bring the jobs in line with them, and keep what became of each file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any, Final, Protocol

from msgspec import Struct, field

from sweephand.domain.access import PrincipalKind
from sweephand.domain.ids import JobKey, JobName, Namespace
from sweephand.domain.job import JobStatus
from sweephand.engine.delete import delete
from sweephand.engine.edit import edit
from sweephand.engine.grant import namespace_document
from sweephand.engine.lookup import version_of
from sweephand.errors import Conflict, Defect, InvalidInput, NotFound, SweephandError, Unavailable
from sweephand.ports import World

FILE: Final = "file"
RETRY_AFTER: Final = timedelta(minutes=1)
"""How long a file with errors rests that has not changed: what it lacks, a pool or a template, may be there by then."""
PATH_CHARS_MAX: Final = 500
ERRORS_MAX: Final = 50
_PAGE: Final = 500


class Found(Struct, frozen=True):
    """A file that is there; another tag means another content."""

    path: str
    tag: str


class Folder(Protocol):
    """Where job files are."""

    def listed(self) -> Sequence[Found]:
        """All of them, or an error: what is not listed counts as removed."""

    def read(self, path: str) -> bytes | None:
        """Its content; None where it is gone since it was listed."""


class Filing(Protocol):
    """How a file's text becomes jobs: as the API does it."""

    def documents(self, path: str, content: bytes) -> list[dict[str, Any]]:
        """The definitions in it, or a refusal."""

    def put(self, namespace: Namespace, document: Mapping[str, Any], *, path: str) -> int:
        """The version in force afterwards: a new one, by `actor_of` the path, only where the definition changed, or was
        another file's."""


class FileState(Struct, frozen=True):
    """What became of a file: the versions that its jobs are at by it, and what is wrong with it."""

    path: str
    tag: str
    at: datetime
    jobs: Mapping[str, int] = field(default_factory=dict)
    errors: tuple[tuple[str, str], ...] = ()


class Scanned(Struct, frozen=True):
    """What a scan found and did."""

    files: int = 0
    changed: int = 0
    removed: int = 0
    """Jobs that went with their files."""
    wrong: int = 0
    """Files with errors."""


def scan(world: World, namespace: Namespace, folder: Folder, filing: Filing, *, removes: bool = True) -> Scanned:
    """Put the jobs of files that changed, and remove those of files that are gone, unless they are to stay.

    A job goes with its file only if its version in force came from that file: what somebody edited since stays.
    Repeating it changes nothing: what is in force is compared first, and a file's state is written last.
    """
    listed = {found.path: found for found in folder.listed() if len(found.path) <= PATH_CHARS_MAX}
    before = {state.path: state for state in file_states(world, namespace)}
    owners = {job: path for path in sorted(before) if path in listed for job in before[path].jobs}
    changed = removed = 0
    for path in sorted(listed):
        state = before.get(path)
        if not _is_due(world, listed[path], state):
            continue
        content = folder.read(path)
        if content is None:
            continue
        after, gone = _applied(world, namespace, filing, listed[path], content, state, owners)
        owners |= dict.fromkeys(after.jobs, path)
        removed += sum(_removed(world, JobKey(namespace, JobName(job)), path) for job in gone if removes)
        _write(world, namespace, after)
        changed += 1
    for path, state in before.items():
        if path not in listed:
            # What another file has taken over meanwhile has that file for its author.
            removed += sum(_removed(world, JobKey(namespace, JobName(job)), path) for job in state.jobs if removes)
            _forget(world, namespace, path)
    wrong = sum(bool(state.errors) for state in file_states(world, namespace)) if changed else _wrong(before, listed)
    return Scanned(len(listed), changed, removed, wrong)


def known_namespaces(world: World, named: Iterable[str]) -> list[Namespace]:
    """The namespaces whose files are looked for: those of these that are there, and all that ever had a job, since its
    file may be gone. Reads only."""
    there = {Namespace(name) for name in named if namespace_document(world, Namespace(name)) is not None}
    return sorted(there | set(world.jobs.namespaces()))


def file_states(world: World, namespace: Namespace) -> Iterator[FileState]:
    """What became of every file of a namespace, by path. Reads only."""
    after: str | None = None
    while stored := world.shared.listed(namespace, FILE, after=after, limit=_PAGE):
        yield from (decode_state(one.name, one.document) for one in stored)
        after = stored[-1].name


def decode_state(path: str, document: Mapping[str, Any]) -> FileState:
    """The state that is stored under a path."""
    errors = tuple((at, message) for at, message in document["errors"])
    return FileState(path, document["tag"], datetime.fromisoformat(document["at"]), document["jobs"], errors)


def _wrong(before: Mapping[str, FileState], listed: Mapping[str, Found]) -> int:
    return sum(bool(state.errors) for path, state in before.items() if path in listed)


def _is_due(world: World, found: Found, state: FileState | None) -> bool:
    if state is None or state.tag != found.tag:
        return True
    return bool(state.errors) and world.clock.now() - state.at >= RETRY_AFTER


def _applied(
    world: World,
    namespace: Namespace,
    filing: Filing,
    found: Found,
    content: bytes,
    before: FileState | None,
    owners: Mapping[str, str],
) -> tuple[FileState, list[str]]:
    """The file's state after its jobs were put, and the jobs that are no longer in it."""
    known = dict(before.jobs) if before else {}
    at = world.clock.now()
    try:
        documents = filing.documents(found.path, content)
    except InvalidInput as refused:
        return FileState(found.path, found.tag, at, known, refused.errors[:ERRORS_MAX]), []
    jobs: dict[str, int] = {}
    errors: list[tuple[str, str]] = []
    for n, document in enumerate(documents):
        prefix = f"[{n}]." if len(documents) > 1 else ""
        name = str(document.get("name"))
        try:
            _check_owner(name, found.path, jobs, owners)
            jobs[name] = filing.put(namespace, document, path=found.path)
        except (Unavailable, Defect):
            raise
        except InvalidInput as refused:
            errors += [(f"{prefix}{path}", message) for path, message in refused.errors]
        except SweephandError as refused:
            errors.append((f"{prefix}name", refused.message))
    # While something is wrong with a file, its jobs stay as they were: one that is misspelt was not taken out.
    gone = [name for name in known if name not in jobs] if not errors else []
    kept = {**known, **jobs} if errors else jobs
    return FileState(found.path, found.tag, at, kept, tuple(errors[:ERRORS_MAX])), gone


def _check_owner(name: str, path: str, jobs: Mapping[str, int], owners: Mapping[str, str]) -> None:
    if name in jobs:
        raise InvalidInput(f"The job '{name[:128]}' is in this file twice.", "name")
    owner = owners.get(name, path)
    if owner != path:
        raise InvalidInput(f"The job '{name[:128]}' comes from {owner} already.", "name")


def _removed(world: World, key: JobKey, path: str) -> bool:
    """Delete a job whose version in force came from this file; whether it was."""
    head = world.jobs.head(key)
    if head is None or head.status is JobStatus.DELETED:
        return False
    if version_of(world, key, head.version).created_by != actor_of(path):
        return False
    with suppress(NotFound, Conflict):  # somebody edited or deleted it just now: then it is theirs
        delete(world, key, actor=actor_of(path), expected=head.version)
        return True
    return False


def actor_of(path: str) -> str:
    """How the audit log names a file."""
    return f"{PrincipalKind.FILE}:{path}"


def is_files(actor: str) -> bool:
    """Whether a version was made by a file."""
    return actor.startswith(f"{PrincipalKind.FILE}:")


def _write(world: World, namespace: Namespace, state: FileState) -> None:
    document = {
        "tag": state.tag,
        "at": state.at.isoformat(),
        "jobs": dict(state.jobs),
        "errors": [list(error) for error in state.errors],
    }
    edit(world, namespace, FILE, state.path, lambda _before: document)


def _forget(world: World, namespace: Namespace, path: str) -> None:
    stored = world.shared.get(namespace, FILE, path)
    if stored is not None:
        world.shared.delete(namespace, FILE, path, expected=stored[0])  # where it moved meanwhile, it is there again
