"""The functions as Lambda runs them: the real handlers, each execution environment dealing with one event at a time."""

from __future__ import annotations

import importlib.util
import json
import logging
import tempfile
from collections import defaultdict
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from threading import Lock
from typing import Any, Final
from unittest.mock import patch

from msgspec import Struct
from msgspec.structs import replace

from sweephand import entrypoint
from sweephand.errors import Defect
from sweephand.local.cloud.account import arn
from sweephand.ports import Clock, Dice
from sweephand.settings import Settings
from sweephand.topology import FUNCTIONS, Function, Names

logger: Final = logging.getLogger("sweephand.local")

Event = Mapping[str, Any]
Handler = Callable[[Any, "Context"], Any]

_BY_NAME: Final = {function.name: function for function in FUNCTIONS}
_MILLISECOND: Final = timedelta(milliseconds=1)


class FunctionFailed(Exception):
    """A function raised, or took too long; Lambda says so with the type and the message of its error."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(f"{kind}: {message}")
        self.kind: Final = kind
        self.message: Final = message

    @property
    def payload(self) -> dict[str, Any]:
        return {"errorType": self.kind, "errorMessage": self.message}


class Later(Struct, frozen=True):
    """What a substitute answers that takes its time: a machine waits for it, and meanwhile all else goes on."""

    answer: Any
    after: timedelta


class Context(Struct, frozen=True):
    """What Lambda tells a handler about its invocation."""

    function_name: str
    aws_request_id: str
    memory_limit_in_mb: int
    ends_at: datetime
    clock: Clock

    @property
    def invoked_function_arn(self) -> str:
        return function_arn(self.function_name)

    def get_remaining_time_in_millis(self) -> int:
        return max(0, int((self.ends_at - self.clock.now()) / _MILLISECOND))


class Functions:
    """Every function of the topology: its handler in `folder`, or a substitute. They have `tmp` as their /tmp."""

    def __init__(
        self,
        folder: Path,
        settings: Settings,
        *,
        tmp: Path,
        clock: Clock,
        dice: Dice,
        substitutes: Mapping[str, Handler] | None = None,
    ) -> None:
        self._folder = folder
        self._settings = settings
        self._tmp = tmp
        self._names = Names(settings.name)
        self._clock = clock
        self._dice = dice
        self._substitutes = substitutes or {}
        self._starting = Lock()
        self._idle: defaultdict[str, list[Handler]] = defaultdict(list)

    def invoke(self, name: str, event: Event) -> Any:
        """What the function answers to an event, both as JSON carries them; `FunctionFailed` where it does not."""
        function, given = _BY_NAME[name], _carried(event)
        began_at = self._clock.now()
        context = Context(
            self._names.function(function),
            self._dice.nonce(),
            function.memory_mb,
            began_at + function.timeout,
            self._clock,
        )
        handler = self._taken(function)
        try:
            answer = handler(given, context)
        except Exception as error:
            logger.info("The function %s failed.", name, exc_info=True)
            raise FunctionFailed(type(error).__name__, str(error)) from error
        finally:
            self._idle[name].append(handler)
        takes = answer.after if isinstance(answer, Later) else self._clock.now() - began_at
        if takes > function.timeout:
            limit = f"{function.timeout.total_seconds():.2f}"
            raise FunctionFailed("Sandbox.Timedout", f"Error: Task timed out after {limit} seconds")
        return replace(answer, answer=_carried(answer.answer)) if isinstance(answer, Later) else _carried(answer)

    def _taken(self, function: Function) -> Handler:
        """An environment that is not busy; where all are, one more has a cold start."""
        try:
            return self._idle[function.name].pop()
        except IndexError:
            pass  # each is busy, or there is none yet
        return self._substitutes.get(function.name) or self._started(function)

    def _started(self, function: Function) -> Handler:
        path = self._folder / function.name / "handler.py"
        spec = importlib.util.spec_from_file_location(f"functions.{function.name}.handler", path)
        if spec is None or spec.loader is None:
            raise Defect(f"{path} cannot be loaded.")
        module = importlib.util.module_from_spec(spec)
        named = {"AWS_LAMBDA_FUNCTION_NAME": self._names.function(function)}
        with self._starting, patch.object(tempfile, "tempdir", str(self._tmp)):
            entrypoint.begin({**self._settings.to_environ(), **named}, clock=self._clock, dice=self._dice)
            spec.loader.exec_module(module)
        handler: Handler = module.handler
        return handler


def function_arn(name: str) -> str:
    """The ARN of a function, by its name in the account."""
    return arn("lambda", f"function:{name}")


def _carried(value: Any) -> Any:
    """What arrives at the other side of an invocation."""
    try:
        return json.loads(json.dumps(value))
    except (TypeError, ValueError) as error:
        raise FunctionFailed("Runtime.MarshalError", f"Unable to marshal response: {error}") from error
