"""A job's body as it is run: the tasks that it calls, in which order they stand, and what they need."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

from sweephand.dsl.values import Value, condition, plain
from sweephand.dsl.where import Where, here, nearest, wrong

if TYPE_CHECKING:
    from typing import Self

__all__ = ["Group", "Recorded", "Recording", "group", "under_way"]

_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_GROUP: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*(\.[A-Za-z0-9][A-Za-z0-9_-]*)*")
_REFERENCE: Final = re.compile(r"(\$*)\$\{tasks\.([^}]*)\}")
FIELDS: Final = (
    "retry",
    "retries",
    "timeout",
    "cache",
    "when",
    "if_",
    "branch",
    "pool",
    "slots",
    "priority",
    "labels",
    "publishes",
    "max",
)
"""What every task may say; `max` is how long the list of a map may be."""

_stack: Final[list[Recording]] = []


class Recorded:
    """A task that the body called."""

    __slots__ = ("fields", "groups", "id", "needs", "recording", "where")

    def __init__(self, recording: Recording, id_: str, fields: dict[str, Any], groups: tuple[Group, ...]) -> None:
        self.recording = recording
        self.id = id_
        self.fields = fields
        self.groups = groups
        self.needs: dict[str, None] = {}
        """In the order in which they were said."""
        self.where = here()


class Recording:
    """The tasks of one job, while its body is run: `with Recording(…)`."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.tasks: dict[str, Recorded] = {}
        self.groups: list[Group] = []

    def __enter__(self) -> Self:
        _stack.append(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _stack.remove(self)

    def add(self, id_: Any, run: Mapping[str, Any], options: Mapping[str, Any], *, over: object = None) -> Value:
        """A task of this job; what it will come to."""
        if not isinstance(id_, str) or not _ID.fullmatch(id_):
            raise wrong(
                f"{id_!r} is no id of a task: letters, digits, '.', '_' and '-' can be in it, as in load-files."
            )
        if id_ in self.tasks:
            raise wrong(
                f"There is a task '{id_}' already, from line {self.tasks[id_].where.line}: give this one another id, "
                f"as in load.options(id='{id_}-2')(…)."
            )
        fields: dict[str, Any] = {"id": id_, "run": dict(run)}
        if over is not None:
            fields["map"] = _map(over, options.get("max"))
        elif options.get("max") is not None:
            raise wrong("'max' is how long the list of a map may be, and this task is not mapped.")
        for name in FIELDS:
            if options.get(name) is not None and name != "max":
                value = options[name]
                fields[name.rstrip("_")] = condition(value) if name == "if_" else plain(value, f"{name} of '{id_}'")
        if self.groups:
            fields["group"] = ".".join(one.name for one in self.groups)
        recorded = self.tasks[id_] = Recorded(self, id_, fields, tuple(self.groups))
        return Value(f"tasks.{id_}.output", recorded)

    def order(self, before: object, after: object) -> None:
        """All of these come before all of those."""
        firsts, lasts = [*self._members(after, is_before=False)], [*self._members(before, is_before=True)]
        for later in firsts:
            for earlier in lasts:
                if earlier is later:
                    raise wrong(f"The task '{later.id}' cannot come after itself.")
                later.needs.setdefault(earlier.id)

    def documents(self) -> list[dict[str, Any]]:
        """The tasks as a job file has them, with what they need: by order, and by what they use."""
        for recorded in self.tasks.values():
            own = recorded.needs
            recorded.needs = dict.fromkeys([*self._used(recorded), *own])
        self._check_cycles()
        return [{**one.fields, **({"needs": list(one.needs)} if one.needs else {})} for one in self.tasks.values()]

    def _members(self, given: object, *, is_before: bool) -> Iterator[Recorded]:
        if isinstance(given, Value):
            if given._recorded is None:
                raise wrong(f"{given!r} is no task: only tasks come before and after each other.")
            if given._recorded.recording is not self:
                raise wrong(f"The task '{given._recorded.id}' is of another job, '{given._recorded.recording.name}'.")
            yield given._recorded
        elif isinstance(given, Group):
            yield from given.ends(self) if is_before else given.beginnings(self)
        elif isinstance(given, list | tuple):
            for one in given:
                yield from self._members(one, is_before=is_before)
        else:
            told = getattr(given, "as_argument", f"{given!r}: only tasks and groups come before and after each other")
            raise wrong(f"This is {told}.")

    def _used(self, recorded: Recorded) -> Iterator[str]:
        """The tasks whose outputs its texts name; ids may have dots, and the longest counts."""
        for text in _texts([recorded.fields.get(name) for name in ("map", "if", "run")]):
            for found in _REFERENCE.finditer(text):
                if len(found[1]) % 2:
                    continue  # $${ stands for ${
                names = found[2].split(".")
                ids = (".".join(names[:end]) for end in range(len(names), 0, -1))
                known = next((one for one in ids if one in self.tasks), None)
                if known is None:
                    raise wrong(
                        f"There is no task '{names[0]}' in this job{nearest(names[0], (*self.tasks,))}", recorded.where
                    )
                if known != recorded.id:
                    yield known

    def _check_cycles(self) -> None:
        done: set[str] = set()
        for first in self.tasks:
            path: list[str] = []
            waiting = [iter([first])]
            while waiting:
                found = next(waiting[-1], None)
                if found is None:
                    waiting.pop()
                    if path:
                        done.add(path.pop())
                elif found in path:
                    circle = " needs ".join(f"'{one}'" for one in [*path[path.index(found) :], found])
                    raise wrong(f"No task can begin: {circle}.", self.tasks[found].where)
                elif found not in done:
                    path.append(found)
                    waiting.append(iter(self.tasks[found].needs))


def under_way() -> Recording | None:
    """The job whose body is being run; None where tasks are plain functions."""
    return _stack[-1] if _stack else None


class Group:
    """Tasks that people see together: `with group("ingest"):`. It can stand before and after tasks."""

    __slots__ = ("name", "where")

    def __init__(self, name: Any) -> None:
        if not isinstance(name, str) or not _GROUP.fullmatch(name):
            raise wrong(f"{name!r} is no name of a group: it is names with dots between them, such as ingest.raw.")
        self.name: str = name
        self.where: Where = here()

    def __enter__(self) -> Self:
        recording = under_way()
        if recording is not None:
            recording.groups.append(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        recording = under_way()
        if recording is not None:
            recording.groups.remove(self)

    def __rshift__(self, after: Any) -> Any:
        self._recording().order(self, after)
        return after

    def __lshift__(self, before: Any) -> Any:
        self._recording().order(before, self)
        return before

    def __rrshift__(self, before: Any) -> Group:
        self._recording().order(before, self)
        return self

    def beginnings(self, recording: Recording) -> Iterator[Recorded]:
        """Those that need nothing of the group."""
        members = self._members(recording)
        yield from (one for one in members.values() if not members.keys() & _needs(recording, one))

    def ends(self, recording: Recording) -> Iterator[Recorded]:
        """Those that nothing of the group needs."""
        members = self._members(recording)
        needed = {need for one in members.values() for need in _needs(recording, one)}
        yield from (one for one in members.values() if one.id not in needed)

    def _members(self, recording: Recording) -> dict[str, Recorded]:
        found = {one.id: one for one in recording.tasks.values() if self in one.groups}
        if not found:
            raise wrong(f"There is no task in the group '{self.name}' yet.")
        return found

    def _recording(self) -> Recording:
        recording = under_way()
        if recording is None:
            raise wrong("Groups stand before and after tasks within a job only.")
        return recording


group = Group


def _needs(recording: Recording, recorded: Recorded) -> set[str]:
    return {*recorded.needs, *recording._used(recorded)}


def _map(over: object, longest: object) -> dict[str, Any]:
    if isinstance(over, Mapping):
        return {key: plain(value, f"map.{key}") for key, value in over.items()}
    if not isinstance(over, Value | str | list | tuple):
        raise wrong(
            f"A task is mapped over a list, or over a value that gives one, and not over a {type(over).__name__}."
        )
    mapped = {"over": plain(over, "the list")}
    return mapped if longest is None else {**mapped, "max": plain(longest, "max")}


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for one in value.values():
            yield from _texts(one)
    elif isinstance(value, Iterable):
        for one in value:
            yield from _texts(one)
