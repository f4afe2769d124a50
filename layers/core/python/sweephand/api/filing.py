"""Job files that are scanned: their text read strictly, their jobs put as a call of the API would put them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any, Final, NoReturn

from sweephand.api.asked import Asked
from sweephand.api.jobs import checked_definition, put_definition
from sweephand.domain.access import Caller, PrincipalKind, Role
from sweephand.domain.definition import document_of
from sweephand.domain.ids import JobKey, JobName, Namespace
from sweephand.domain.job import JobStatus
from sweephand.domain.kinds import Installed
from sweephand.domain.plain import DEPTH_MAX, plain
from sweephand.domain.targets import Targets
from sweephand.engine.lookup import version_of
from sweephand.engine.scan import actor_of, is_files
from sweephand.errors import InvalidInput
from sweephand.ports import World

FILE_BYTES_MAX: Final = 4_194_304
ENDINGS: Final = (".yaml", ".yml", ".json")


def is_job_file(path: str) -> bool:
    """Whether a file is scanned, by its name: Python files are compiled where they are applied, and hidden ones are
    somebody's own."""
    whole = PurePosixPath(path)
    return whole.suffix.lower() in ENDINGS and not any(part.startswith(".") for part in whole.parts)


class ApiFiling:
    """As an editor of the namespace, with all that the API refuses."""

    def __init__(
        self, world: World, *, kinds: frozenset[str], operators: Installed, targets: Targets | None = None
    ) -> None:
        self._world = world
        self._kinds, self._operators, self._targets = kinds, operators, targets

    def documents(self, path: str, content: bytes) -> list[dict[str, Any]]:
        """The definitions in a file; several as a list, or in YAML one after the other."""
        if len(content) > FILE_BYTES_MAX:
            _refuse(f"The file is larger than {FILE_BYTES_MAX} bytes.")
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError:
            _refuse("The file is not UTF-8 text.")
        loaded = _json(text) if path.lower().endswith(".json") else _yaml(text)
        if not loaded:
            _refuse("There is nothing in the file.")
        return [_plain(one, f"[{n}]" if len(loaded) > 1 else "") for n, one in enumerate(loaded)]

    def put(self, namespace: Namespace, document: Mapping[str, Any], *, path: str) -> int:
        """The version in force afterwards: a new one only where the definition changed, or was another file's."""
        ask = self._asked(namespace, path)
        name = document.get("name")
        head = self._world.jobs.head(JobKey(namespace, JobName(name))) if isinstance(name, str) and name else None
        if head is None or head.status is JobStatus.DELETED:
            return put_definition(ask, document, expected=None).version
        current = version_of(self._world, head.key, head.version)
        was_anothers = is_files(current.created_by) and current.created_by != actor_of(path)
        if not was_anothers and current.document == document_of(checked_definition(ask, document)):
            return head.version
        return put_definition(ask, document, expected=head.version).version

    def _asked(self, namespace: Namespace, path: str) -> Asked:
        caller = Caller(path, PrincipalKind.FILE, namespace, Role.EDITOR)
        return Asked(self._world, caller, {}, self._kinds, self._operators, None, None, self._targets)


def _plain(document: object, path: str) -> dict[str, Any]:
    if not isinstance(document, dict):
        _refuse("A definition is an object with fields, such as 'name'.", path)
    copied, errors = plain(document, bytes_max=FILE_BYTES_MAX)
    if errors:
        raise InvalidInput(errors[0][1], errors=tuple(errors))
    return copied


def _json(text: str) -> list[Any]:
    try:
        content = json.loads(text, object_pairs_hook=_distinct)
    except RecursionError:
        _refuse(f"It is nested more than {DEPTH_MAX} levels deep.")
    except json.JSONDecodeError as error:
        _refuse(f"Line {error.lineno} is not JSON: {error.msg}.")
    except ValueError as error:
        _refuse(str(error))
    return content if isinstance(content, list) else [content]


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({name for name, _ in pairs}) < len(pairs):
        raise ValueError(f"A field of {', '.join(sorted({name for name, _ in pairs}))[:200]} is there twice.")
    return dict(pairs)


def _yaml(text: str) -> list[Any]:
    from ruamel.yaml import YAML  # late: only who scans files needs it
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    try:
        _check_yaml(text)
        loaded = [one for one in YAML(typ="safe", pure=True).load_all(text) if one is not None]
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"Line {mark.line + 1}" if mark is not None else "It"
        _refuse(f"{where} is not YAML: {error.problem or error.context}.")
    except (YAMLError, ValueError) as error:
        _refuse(f"It is not YAML: {' '.join(str(error).split())[:200]}.")
    return loaded[0] if len(loaded) == 1 and isinstance(loaded[0], list) else loaded


def _check_yaml(text: str) -> None:
    """Refuse what grows when it is read, or nests too deep, before anything is built of it."""
    from ruamel.yaml import YAML
    from ruamel.yaml.events import AliasEvent, CollectionEndEvent, CollectionStartEvent

    depth = 0
    for event in YAML(typ="safe", pure=True).parse(text):
        if isinstance(event, AliasEvent):
            _refuse(f"Line {event.start_mark.line + 1} has an alias: write out what it stands for, or use a template.")
        if isinstance(event, CollectionStartEvent | CollectionEndEvent):
            depth += 1 if isinstance(event, CollectionStartEvent) else -1
        if depth > DEPTH_MAX + 1:
            _refuse(f"It is nested more than {DEPTH_MAX} levels deep.")


def _refuse(message: str, path: str = "") -> NoReturn:
    raise InvalidInput(message, path)
