"""Operators and hooks that other packages bring, by the entry points `sweephand.operators` and `sweephand.hooks`.

They are looked for when the first of them could be needed, and once. One that is broken is logged and left out.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from traceback import format_exc
from typing import TYPE_CHECKING, Any, Final, TypeVar

from msgspec import Struct

from sweephand.calls import Outcome, Skipped, Succeeded
from sweephand.domain.duration import format_duration
from sweephand.domain.fields import json_bytes
from sweephand.domain.ids import check_name
from sweephand.domain.kinds import KINDS, Installed, Offer
from sweephand.domain.limits import OUTPUT_KEPT_MAX
from sweephand.domain.output import too_large
from sweephand.domain.plain import plain
from sweephand.domain.retry import Failure, FailureClass
from sweephand.engine.complete import TIMEOUT
from sweephand.errors import InvalidInput
from sweephand.messages import Again, Unstarted
from sweephand.operators.errand import Errand
from sweephand.operators.operator import Attempt, Operator
from sweephand.operators.process import Cause
from sweephand.operators.specs import offer_of

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = ["HOOKS", "OPERATORS", "Plugins", "Steps"]

logger: Final = logging.getLogger("sweephand.operators")

OPERATORS: Final = "sweephand.operators"
HOOKS: Final = "sweephand.hooks"

_OUTCOMES: Final = (Succeeded, Skipped, Failure, Unstarted, Again)
_MESSAGE_CHARS_MAX: Final = 1_000

T = TypeVar("T")


class Plugin(Struct, frozen=True):
    """An operator of another package, ready to run."""

    operator: Operator
    offer: Offer

    def execute(self, attempt: Attempt) -> Outcome:
        """What it came to; whatever it raises, or returns instead of an outcome, is a failure of the task.

        When its time is over it is told to stop, and after a grace it is left to itself: a thread cannot be killed.
        """
        errand = Errand(lambda: self.operator.execute(attempt), leave=attempt.cancellation.ask)
        try:
            outcome = errand.wait(attempt.call.timeout, grace=attempt.grace)
        except InvalidInput:
            raise
        except Exception as error:  # noqa: BLE001 - it is logged without what it must not say
            _log_error(attempt, f"The operator '{attempt.call.task.kind}' raised in")
            return Failure(type(error).__name__, str(error)[:_MESSAGE_CHARS_MAX] or "It raised without a word.")
        if isinstance(outcome, Cause):
            return Failure(TIMEOUT, f"The attempt took longer than {format_duration(attempt.call.timeout)}.")
        return _kept(outcome)


class Plugins:
    """What is installed on this machine. Safe for many threads."""

    def __init__(self) -> None:
        self._lock = threading.RLock()

    @property
    def operators(self) -> Mapping[str, Plugin]:
        """Operators by the names that steps call them by."""
        with self._lock:
            return self._operators

    @property
    def hooks(self) -> tuple[tuple[str, Any], ...]:
        """Hooks with their names, in the order of these."""
        with self._lock:
            return self._hooks

    def around(self, attempt: Attempt, run: Callable[[], Outcome]) -> Outcome:
        """Run an attempt between the hooks: each that let it begin hears how it ended, the last first."""
        begun: list[tuple[str, Any]] = []
        outcome: Outcome | None = None
        for name, hook in self.hooks:
            try:
                if hasattr(hook, "before"):
                    hook.before(attempt)
            except Exception as error:  # noqa: BLE001 - likewise
                _log_error(attempt, f"The hook '{name}' failed before")
                outcome = Failure("HookFailed", f"The hook '{name}' failed: {error}"[:_MESSAGE_CHARS_MAX])
                break
            begun.append((name, hook))
        ended = run() if outcome is None else outcome
        for name, hook in reversed(begun):
            try:
                if hasattr(hook, "after"):
                    hook.after(attempt, ended)
            except Exception:  # noqa: BLE001 - likewise
                _log_error(attempt, f"The hook '{name}' failed after")
        return ended

    @cached_property
    def _operators(self) -> dict[str, Plugin]:
        return dict(_all(OPERATORS, _operator))

    @cached_property
    def _hooks(self) -> tuple[tuple[str, Any], ...]:
        return tuple(_all(HOOKS, _hook))


class Steps(Mapping[str, Offer]):
    """What this place says of kinds of steps: of some built-in ones, and of operators that are installed.

    A built-in name is answered without looking for what is installed.
    """

    def __init__(self, built_in: Installed, plugins: Plugins) -> None:
        self._built_in = built_in
        self._plugins = plugins

    def __getitem__(self, kind: str) -> Offer:
        return self._built_in[kind] if kind in KINDS else self._plugins.operators[kind].offer

    def __iter__(self) -> Iterator[str]:
        yield from self._built_in
        yield from self._plugins.operators

    def __len__(self) -> int:
        return len(self._built_in) + len(self._plugins.operators)


def _all(group: str, make: Callable[[EntryPoint], T]) -> Iterator[tuple[str, T]]:
    """What can be loaded of a group; of two with one name, always the one whose package's name comes first."""
    from importlib.metadata import entry_points  # not before: it takes a while, and most processes have no use for it

    seen: set[str] = set()
    for point in sorted(entry_points(group=group), key=lambda one: (one.name, _package(one))):
        try:
            if point.name in seen:
                raise InvalidInput("Another package has taken this name.")
            made = make(point)
        except Exception as error:
            logger.error(
                "'%s' of %s (%s) is left out: %s",
                point.name,
                _package(point),
                group,
                error,
                exc_info=not isinstance(error, InvalidInput),
            )
            continue
        seen.add(point.name)
        yield point.name, made


def _package(point: EntryPoint) -> str:
    return point.dist.name if point.dist is not None else "an unknown package"


def _operator(point: EntryPoint) -> Plugin:
    name = check_name(point.name, path="name")
    if name in KINDS:
        raise InvalidInput(f"'{name}' is a kind of step of Sweephand's own: choose another name.")
    made = _made(point)
    if not callable(getattr(made, "execute", None)):
        raise InvalidInput("It has no method 'execute'.")
    return Plugin(made, offer_of(name, getattr(made, "Spec", None)))


def _hook(point: EntryPoint) -> Any:
    made = _made(point)
    if not any(callable(getattr(made, moment, None)) for moment in ("before", "after")):
        raise InvalidInput("It has neither 'before' nor 'after'.")
    return made


def _made(point: EntryPoint) -> Any:
    loaded = point.load()
    if not isinstance(loaded, type):
        raise InvalidInput("It is not a class.")
    return loaded()


def _log_error(attempt: Attempt, what: str) -> None:
    """What another package raised, without the values that the attempt gave it."""
    logger.error("%s run %s: %s", what, attempt.call.run.key, attempt.redact(format_exc()))


def _kept(outcome: object) -> Outcome:
    """An outcome that can be stored."""
    if not isinstance(outcome, _OUTCOMES):
        return _invalid(f"The operator returned a {type(outcome).__name__}, which is no outcome.")
    if not isinstance(outcome, Succeeded) or outcome.output is None:
        return outcome
    try:
        copied, errors = plain({"output": outcome.output}, bytes_max=4 * OUTPUT_KEPT_MAX)
    except InvalidInput as refused:
        return _invalid(f"The output cannot be kept. {refused.message}")
    if errors:
        return _invalid(f"The output cannot be kept. {errors[0][1]}")
    if json_bytes(copied["output"]) > OUTPUT_KEPT_MAX:
        return too_large()
    return Succeeded(copied["output"])


def _invalid(message: str) -> Failure:
    return Failure("InvalidOutput", message, FailureClass.PERMANENT)
