"""`@task`: a function that a job calls. Where no job is being compiled, it is the function that it was."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import update_wrapper
from typing import TYPE_CHECKING, Any, Final, overload

from sweephand.dsl.recording import FIELDS, under_way
from sweephand.dsl.values import Value, item, plain
from sweephand.dsl.where import here, nearest, wrong

if TYPE_CHECKING:
    from inspect import Signature

__all__ = ["Task", "camel", "task"]

OF_THE_STEP: Final = ("env", "secrets", "limits", "cwd", "skip_exit_code")
"""What goes into the step, beside the function."""
OPTIONS: Final = ("id", *FIELDS, *OF_THE_STEP)
_YIELDS: Final = 0x20
_IS_ASYNC: Final = 0x80 | 0x200
"""Flags of a function's code, as `inspect` has them."""


class Task:
    """A function as a task. Calling it in a job's body adds it to the job, and answers what it will come to."""

    def __init__(self, function: Callable[..., Any], options: Mapping[str, Any], given: Mapping[str, Any]) -> None:
        update_wrapper(self, function)
        self._function = function
        self._options = dict(options)
        self._given = dict(given)
        self._where = here()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        recording = under_way()
        if recording is None:
            return self._function(*args, **{**self._given, **kwargs})
        signature = self._signature()
        try:
            bound = signature.bind(*args, **{**self._given, **kwargs})
        except TypeError as error:
            raise wrong(f"{self._name}{signature} cannot be called like this: {error}.") from None
        return recording.add(self._id, self._step(signature, bound.arguments), self._options)

    def map(self, over: Any, /, **given: Any) -> Any:
        """Once for each item of a list, which goes to the first parameter that is not given.

        Where an argument names `item` itself, such as `path=item.path`, the item goes nowhere else.
        """
        recording = under_way()
        constants = {**self._given, **given}
        signature = self._signature()
        args, named = self._with_item(signature, constants)
        if recording is None:
            return [self._function(*([one] if args else ()), **{**named, **self._put(named, one)}) for one in over]
        try:
            bound = signature.bind(*args, **named)
        except TypeError as error:
            raise wrong(f"{self._name}{signature} cannot be mapped like this: {error}.") from None
        return recording.add(self._id, self._step(signature, bound.arguments), self._options, over=over)

    def partial(self, **given: Any) -> Task:
        """The same task with some of its arguments given."""
        return Task(self._function, self._options, {**self._given, **given})

    def options(self, **options: Any) -> Task:
        """The same task with other options: an `id`, a `timeout`, `if_`, `when`, …"""
        return Task(self._function, {**self._options, **_checked(options)}, self._given)

    @property
    def as_argument(self) -> str:
        """What is wrong where it stands uncalled."""
        return f"the task '{self._name}' itself: call it, {self._name}(…), to use what it comes to"

    __name__: str

    def __repr__(self) -> str:
        return f"<task {self._name}>"

    def __rshift__(self, _after: object) -> Any:
        raise wrong(f"This is {self.as_argument}.")

    @property
    def _name(self) -> str:
        return str(getattr(self._function, "__qualname__", self._function))

    @property
    def _id(self) -> Any:
        return self._options.get("id") or self._name.rpartition(".")[2]

    def _signature(self) -> Signature:
        from inspect import signature  # late: a task's own process has no need of it

        return signature(self._function)

    def _step(self, signature: Signature, arguments: Mapping[str, Any]) -> dict[str, Any]:
        args, kwargs = _split(signature, arguments)
        step: dict[str, Any] = {"python": self._address()}
        if args:
            step["args"] = [plain(one, f"argument {n} of {self._name}") for n, one in enumerate(args, 1)]
        if kwargs:
            step["kwargs"] = {name: plain(one, f"'{name}' of {self._name}") for name, one in kwargs.items()}
        for name in OF_THE_STEP:
            if self._options.get(name) is not None:
                step[camel(name)] = plain(self._options[name], f"{name} of {self._name}")
        return step

    def _address(self) -> str:
        """How its process finds the function: by the name of its module and its own."""
        module = self._function.__module__
        found: Any = sys.modules.get(module)
        for part in self._name.split("."):
            found = getattr(found, part, None)
        if found is not self._function and getattr(found, "_function", None) is not self._function:
            raise wrong(
                f"'{self._name}' cannot be found in '{module}' when it is to run: a task is a function with a name of "
                "its own, defined at the top of a module.",
                self._where,
            )
        return f"{module}:{self._name}"

    def _with_item(self, signature: Signature, given: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """The arguments of each instance: by place, where the function takes the item so, and by name."""
        if any(_names_item(one) for one in given.values()):
            return [], dict(given)
        for parameter in signature.parameters.values():
            if parameter.name in given or parameter.kind is parameter.VAR_KEYWORD:
                continue
            if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL):
                return [item], dict(given)
            return [], {parameter.name: item, **given}
        raise wrong(f"{self._name}{signature} takes nothing that an item of the list could go to.")

    def _put(self, named: Mapping[str, Any], one: Any) -> dict[str, Any]:
        """The item itself, where there is no job that would be run later."""
        if any(_names_item(value) and value is not item for value in named.values()):
            raise wrong(f"Outside a job, {self._name}.map gives its items to one parameter as they are.")
        return {name: one for name, value in named.items() if value is item}


class _Tasks:
    """The decorator: `@task`, `@task(timeout="10m")`, `@task.branch`."""

    @overload
    def __call__(self, function: Callable[..., Any], /, **options: Any) -> Task: ...
    @overload
    def __call__(self, function: None = None, /, **options: Any) -> Callable[[Callable[..., Any]], Task]: ...
    def __call__(self, function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
        checked = _checked(options)
        if function is None:
            return lambda found: Task(_plain_function(found), checked, {})
        return Task(_plain_function(function), checked, {})

    @overload
    def branch(self, function: Callable[..., Any], /, **options: Any) -> Task: ...
    @overload
    def branch(self, function: None = None, /, **options: Any) -> Callable[[Callable[..., Any]], Task]: ...
    def branch(self, function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
        """A task that returns the id of the task that goes on after it, or a list of ids."""
        return self(function, **{**options, "branch": True})


task: Final = _Tasks()


def camel(name: str) -> str:
    """A keyword as the field of a document: `skip_exit_code` is `skipExitCode`, `lambda_` is `lambda`."""
    first, *rest = name.rstrip("_").split("_")
    return first + "".join(part.capitalize() for part in rest)


def _plain_function(function: Any) -> Callable[..., Any]:
    if isinstance(function, Task):
        raise wrong(f"'{function._name}' is a task already: to change how it runs, use its .options(…).")
    if not callable(function) or not hasattr(function, "__qualname__"):
        raise wrong(f"@task stands before a function, and this is a {type(function).__name__}.")
    code = getattr(function, "__code__", None)
    flags = code.co_flags if code is not None else 0
    if flags & _IS_ASYNC:
        raise wrong(
            f"'{function.__qualname__}' is async: a task is a plain function, which may call asyncio.run itself."
        )
    if flags & _YIELDS:
        raise wrong(f"'{function.__qualname__}' yields: a task returns what it comes to, such as a list.")
    found: Callable[..., Any] = function
    return found


def _checked(options: Mapping[str, Any]) -> dict[str, Any]:
    for name in options:
        if name not in OPTIONS:
            raise wrong(f"A task has no option '{name}'{nearest(name, OPTIONS)}")
    return dict(options)


def _split(signature: Signature, arguments: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """By name, what can be given so: a document with names can be read."""
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    parameters = signature.parameters
    by_place = any(parameters[name].kind is parameters[name].VAR_POSITIONAL for name in arguments)
    for name, value in arguments.items():
        kind = parameters[name].kind
        if kind is parameters[name].VAR_POSITIONAL:
            args += value
        elif kind is parameters[name].VAR_KEYWORD:
            kwargs.update(value)
        elif kind is parameters[name].POSITIONAL_ONLY or (by_place and kind is parameters[name].POSITIONAL_OR_KEYWORD):
            args.append(value)
        else:
            kwargs[name] = value
    return args, kwargs


def _names_item(value: object) -> bool:
    if isinstance(value, Value):
        return str(value).startswith(("${item.", "${item}"))
    if isinstance(value, str):
        return "${item" in value
    if isinstance(value, Mapping):
        return any(map(_names_item, value.values()))
    return isinstance(value, list | tuple) and any(map(_names_item, value))
