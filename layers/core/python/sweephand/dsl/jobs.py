"""`@job`: a function whose body calls the job's tasks. It is run once for each time that the job is applied."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import update_wrapper
from typing import Any, Final, overload

from sweephand.dsl.recording import Recording, under_way
from sweephand.dsl.tasks import camel
from sweephand.dsl.values import Value, plain
from sweephand.dsl.where import Where, here, module_file, nearest, wrong

__all__ = ["Job", "job", "made_by"]

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
OF_THE_SCHEDULE: Final = (
    "timezone",
    "dst",
    "start_at",
    "end_at",
    "jitter",
    "calendar",
    "blackouts",
    "after",
    "datasets",
    "events",
    "needs",
    "every",
    "at",
)
"""What a schedule has beside its expression."""
FIELDS: Final = (
    "description",
    "catchup",
    "overlap",
    "start_deadline",
    "concurrency",
    "priority",
    "guarantee",
    "retry",
    "retries",
    "timeout",
    "run_timeout",
    "on_failure",
    "deadline",
    "pause_after_failures",
    "cache",
    "publishes",
    "dependencies",
    "notify",
    "tags",
    "template",
    "with_",
)
OPTIONS: Final = ("name", "schedule", "params", *OF_THE_SCHEDULE, *FIELDS)

_made: Final[list[Job]] = []


class Job:
    """A job of a file. Called like any function it runs at once, its tasks too; in another job's body it is a step."""

    def __init__(self, function: Callable[..., Any], options: Mapping[str, Any]) -> None:
        update_wrapper(self, function)
        self._function = function
        self._options = dict(options)
        self.where: Where = here()
        self.made_in = module_file()
        self.name: str = str(options.get("name") or function.__name__.replace("_", "-"))
        if not _NAME.fullmatch(self.name):
            raise wrong(f"'{self.name}' is no name of a job: letters, digits, '.', '_' and '-' can be in it.")
        self.lines: dict[str, int] = {}
        """The lines of the tasks of the document that was made last, by their paths in it."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        recording = under_way()
        if recording is None:
            return self._function(*args, **kwargs)
        if args:
            raise wrong(f"The params of job '{self.name}' are given by their names.")
        given = {name: plain(value, f"param '{name}' of '{self.name}'") for name, value in kwargs.items()}
        return recording.add(self.name, {"job": self.name, **({"params": given} if given else {})}, {})

    @property
    def as_argument(self) -> str:
        """What is wrong where it stands uncalled."""
        return f"the job '{self.name}' itself: call it, {self.__name__}(…), to run it as a step"

    __name__: str

    def __repr__(self) -> str:
        return f"<job {self.name}>"

    def document(self) -> dict[str, Any]:
        """The job as a job file has it."""
        options, params = self._options, self._params()
        with Recording(self.name) as recording:
            self._function(**{name: Value(f"params.{name}") for name in self._parameters()})
            tasks = recording.documents()
        if not tasks and self._options.get("template") is None:
            raise wrong(f"The body of job '{self.name}' calls no task.", self.where)
        self.lines = {f"tasks[{n}]": one.where.line for n, one in enumerate(recording.tasks.values())}
        document: dict[str, Any] = {"name": self.name}
        told = {"description": _told(self._function.__doc__), **options}
        for field in FIELDS:
            if told.get(field) is not None:
                document[camel(field)] = plain(told[field], f"{field} of '{self.name}'")
        schedule = self._schedule()
        return {
            **document,
            **({"schedule": schedule} if schedule else {}),
            **({"params": params} if params else {}),
            **({"tasks": tasks} if tasks else {}),
        }

    def _schedule(self) -> Any:
        given = plain(self._options.get("schedule"), "schedule")
        parts = {
            camel(part): plain(self._options[part], part)
            for part in OF_THE_SCHEDULE
            if self._options.get(part) is not None
        }
        if isinstance(given, str):
            return {"cron": given, **parts} if parts else given
        if given is not None and not isinstance(given, dict):
            raise wrong("A schedule is a cron expression, such as '0 6 * * *', or a dict.", self.where)
        return {**(given or {}), **parts}

    def _params(self) -> dict[str, Any]:
        """Those of the decorator, and of the body's parameters those with a default."""
        given = plain(self._options.get("params") or {}, f"params of '{self.name}'")
        if not isinstance(given, dict):
            raise wrong("'params' is a dict: params={'region': 'eu'}.", self.where)
        own = {name: plain(value, f"param '{name}'") for name, value in self._parameters().items() if value is not ...}
        return {**own, **given}

    def _parameters(self) -> dict[str, Any]:
        from inspect import signature  # late: a task's own process has no need of it

        found: dict[str, Any] = {}
        known = self._options.get("params") or {}
        for parameter in signature(self._function).parameters.values():
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
                raise wrong(f"The params of a job have names: '{parameter}' has none.", self.where)
            has_default = parameter.default is not parameter.empty
            if not has_default and parameter.name not in known:
                raise wrong(
                    f"The param '{parameter.name}' of job '{self.name}' has no value for runs of the schedule: "
                    f"give it a default, {parameter.name}=….",
                    self.where,
                )
            found[parameter.name] = parameter.default if has_default else ...
        return found


@overload
def job(function: Callable[..., Any], /, **options: Any) -> Job: ...
@overload
def job(function: None = None, /, **options: Any) -> Callable[[Callable[..., Any]], Job]: ...
def job(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """A function as a job: its options are the fields of a job file, in snake case, and those of its schedule."""
    for name in options:
        if name not in OPTIONS:
            raise wrong(f"A job has no option '{name}'{nearest(name, OPTIONS)}")
    return _make(function, options) if function is not None else lambda found: _make(found, options)


def made_by(file: str) -> list[Job]:
    """The jobs that a file made, in their order: not those of files that it imports."""
    return [one for one in _made if one.made_in == file]


def _make(function: Any, options: Mapping[str, Any]) -> Job:
    if not callable(function) or not hasattr(function, "__name__") or isinstance(function, Job):
        raise wrong(f"@job stands before a function, and this is a {type(function).__name__}.")
    made = Job(function, options)
    _made.append(made)
    return made


def _told(docstring: str | None) -> str | None:
    """What a docstring says, without its indentation."""
    if not docstring or not docstring.strip():
        return None
    from inspect import cleandoc

    return cleandoc(docstring)
