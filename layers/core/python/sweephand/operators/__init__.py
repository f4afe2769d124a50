"""What a task can run on this machine: one module per operator, and the target that chooses among them."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from traceback import format_exc
from typing import Final

from msgspec import Struct

from sweephand.artifacts import Found, left_behind
from sweephand.calls import Call, Outcome, Skipped, Succeeded
from sweephand.clock import SystemClock
from sweephand.domain.bounds import USUAL, Bounds
from sweephand.domain.fields import json_bytes
from sweephand.domain.ids import RunKey
from sweephand.domain.images import Images
from sweephand.domain.limits import OUTPUT_BYTES_MAX
from sweephand.domain.output import too_large
from sweephand.domain.retry import Failure, FailureClass
from sweephand.domain.secret import declared
from sweephand.domain.sensor import SENSORS, operator_of
from sweephand.engine.outputs import KeepOutput, fitted, log_key_of
from sweephand.engine.reveal import redacted
from sweephand.errors import InvalidInput, Unavailable
from sweephand.logs import Log, LogKey
from sweephand.messages import Again
from sweephand.operators.command import Command
from sweephand.operators.container import Containing, containers_here
from sweephand.operators.http import Http
from sweephand.operators.operator import Attempt, Cancellation, Operator, Stopping
from sweephand.operators.place import Place, forget_places
from sweephand.operators.plugins import Plugins, Steps
from sweephand.operators.process import GRACE
from sweephand.operators.program import inherited
from sweephand.operators.python import Python
from sweephand.operators.record import EVERY, Record
from sweephand.operators.sensor import HttpSensor
from sweephand.operators.unpacked import Unpacked
from sweephand.ports import Clock
from sweephand.secrets import Redactor

__all__ = [
    "Again",
    "Attempt",
    "Call",
    "Cancellation",
    "Failure",
    "FailureClass",
    "InvalidInput",
    "Logging",
    "Operator",
    "Operators",
    "Outcome",
    "Skipped",
    "Succeeded",
    "Unpacked",
    "containers_here",
    "steps_within",
]

logger: Final = logging.getLogger("sweephand.operators")

_EARLY_MAX: Final = 1_000
_LEFT_OUT_MAX: Final = 20
_MESSAGE_CHARS_MAX: Final = 1_000

_Key = tuple[RunKey, str, int]
Keep = Callable[[LogKey, list[Found]], None]
"""Keeps the files that an attempt left behind."""


class Logging(Struct, frozen=True):
    """Where the logs of attempts go: how one is opened, and how long lines gather before they are written."""

    open: Callable[[LogKey], Log]
    every: timedelta = EVERY


class Operators:
    """The target of this machine. `execute` belongs to a thread per attempt; `cancel` may come from any."""

    def __init__(
        self,
        folder: Path,
        *,
        environ: Mapping[str, str] = os.environ,
        grace: timedelta = GRACE,
        http_may_reach: Iterable[str] = (),
        logging: Logging | None = None,
        keep: Keep | None = None,
        keep_output: KeepOutput | None = None,
        output_max: int = OUTPUT_BYTES_MAX,
        clock: Clock | None = None,
        also: Mapping[str, Operator] | None = None,
        containers: Containing | None = None,
        place: Callable[[Path, Call], Place] = Place,
        only: Mapping[str, Operator] | None = None,
        bounds: Bounds = USUAL,
        code: Unpacked | None = None,
    ) -> None:
        """`also` runs beside what every machine can run, `only` instead of it, and of what is installed. `containers`
        run, or say why not; `place` is where an attempt happens; `code` has what functions are imported from. Without
        `keep_output`, an output of more than `output_max` bytes fails its task."""
        base, http = inherited(environ), Http(http_may_reach)
        self._folder = folder
        self._logging = logging
        self._keep = keep
        self._keep_output = keep_output
        self._output_max = output_max
        self._clock = clock or SystemClock()
        self._grace = grace
        self._bounds = bounds
        self._place = place
        own: dict[str, Operator] = {
            "command": Command(base),
            "python": Python(base, code),
            "http": http,
            "sensor.http": HttpSensor(http),
        }
        offers = dict(http.offers)
        if containers is not None:
            own["container"], offers["container"] = containers, containers.offer
        self._operators: Mapping[str, Operator] = {**own, **(also or {})} if only is None else only
        self._plugins = Plugins()
        self.steps: Final = Steps(offers, self._plugins)
        """What is checked here when a task is saved, and the operators that are installed."""
        self._lock = threading.Lock()
        self._under_way: dict[_Key, Attempt] = {}
        self._early: dict[_Key, None] = {}
        """Cancelled before they began, or after they ended: the oldest are forgotten."""

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds of task that can run here."""
        return frozenset(self._operators) - SENSORS | self._plugins.operators.keys()

    def execute(self, call: Call) -> Outcome:
        """Run the task once, in a folder of its own that is gone afterwards."""
        operator = self._operators.get(operator_of(call.task)) or self._plugins.operators.get(call.task.kind)
        if operator is None:
            known = ", ".join(sorted(self.kinds))
            return _permanent(
                "UnknownOperator", f"'{operator_of(call.task)}' cannot run here: this place runs {known}."
            )
        missing = declared(call.task).keys() - call.secrets.by_name.keys()
        if missing:
            return _permanent("SecretNotFound", f"The call came without its secrets {', '.join(sorted(missing))}.")
        redact = Redactor(call.secrets.by_name.values())
        place = self._place(self._folder, call)
        attempt = Attempt(
            call,
            place,
            self._grace,
            redact,
            record=self._record(call),
            clock=self._clock,
            place_bounds=self._bounds,
        )
        if not self._begin(attempt):
            return Failure("Cancelled", "The attempt was told to stop before it began.")
        try:
            return self._execute(operator, attempt)
        finally:
            with self._lock:
                del self._under_way[_key(call)]

    def cancel(self, call: Call) -> None:
        """End this call if it runs, or as soon as it begins; does not wait for the end."""
        with self._lock:
            attempt = self._under_way.get(_key(call))
            if attempt is None:
                self._early[_key(call)] = None
                while len(self._early) > _EARLY_MAX:
                    del self._early[next(iter(self._early))]
        if attempt is not None:
            attempt.cancellation.ask()

    def abandon(self, call: Call) -> None:
        """The run has ended between two looks of this call: have what it waited for stopped; does not wait for that."""
        if isinstance(self._operators.get(call.task.kind), Stopping):
            threading.Thread(target=self._stop_aside, args=(call,), name="sweephand-stop", daemon=True).start()

    def stop(self, call: Call) -> None:
        """The same, and wait for it."""
        operator = self._operators.get(call.task.kind)
        if isinstance(operator, Stopping):
            operator.stop(Attempt(call, self._place(self._folder, call), self._grace))

    def progress(self, call: Call) -> int | None:
        """How far the call is, if it runs here and says so."""
        with self._lock:
            attempt = self._under_way.get(_key(call))
        return attempt.place.percent() if attempt is not None else None

    def forget(self, *, before: datetime) -> int:
        """Remove what was left here by task runs that nobody has touched since then; of how many."""
        with self._lock:
            under_way = {attempt.place.task_run for attempt in self._under_way.values()}
        return forget_places(self._folder.absolute(), before=before, but=under_way)

    def _stop_aside(self, call: Call) -> None:
        try:
            self.stop(call)
        except Exception:
            logger.warning("What run %s waited for could not be stopped.", call.run.key, exc_info=True)

    def _begin(self, attempt: Attempt) -> bool:
        key = _key(attempt.call)
        with self._lock:
            if key in self._early:
                del self._early[key]
                return False
            self._under_way[key] = attempt
            return True

    def _record(self, call: Call) -> Record:
        if self._logging is None:
            return Record()
        return Record(partial(self._logging.open, log_key_of(call.run, call.task.id)), every=self._logging.every)

    def _execute(self, operator: Operator, attempt: Attempt) -> Outcome:
        """Run the task; whatever comes of it leaves here without the values of its secrets."""
        outcome: Outcome | None = None
        try:
            attempt.place.make()
            outcome = redacted(self._plugins.around(attempt, lambda: _outcome(operator, attempt)), attempt.redact)
        except Exception as error:
            if not attempt.redact:
                raise
            # Whoever catches it would log it as it is.
            logger.error("The operator %s raised: %s", attempt.call.task.kind, attempt.redact(format_exc()))
            outcome = Failure(type(error).__name__, attempt.redact(str(error))[:_MESSAGE_CHARS_MAX])
        finally:
            self._keep_artifacts(attempt)
            # Whoever hears of the outcome can read the whole log.
            attempt.record.end()
            self._clear(attempt, keep_checkpoint=outcome is None or isinstance(outcome, Failure))
        return self._small(attempt.call, redacted(outcome, attempt.redact))

    def _small(self, call: Call, outcome: Outcome) -> Outcome:
        """An outcome that a run can hold: an output that is too large for it is kept in a file, unless somebody else
        does that."""
        if self._keep_output is None:
            is_small = not isinstance(outcome, Succeeded) or json_bytes(outcome.output) <= self._output_max
            return outcome if is_small else too_large(self._output_max)
        try:
            return fitted(outcome, log_key_of(call.run, call.task.id), self._keep_output)
        except Unavailable as error:
            return Failure("OutputNotKept", f"It was done, and its output could not be kept: {error.message}")

    def _keep_artifacts(self, attempt: Attempt) -> None:
        """Keep what the task left behind; what is not kept is said in its log, and fails nothing."""
        if self._keep is None:
            return
        try:
            files, others = left_behind(attempt.place.artifacts)
            if files:
                self._keep(log_key_of(attempt.call.run, attempt.call.task.id), files)
        except (OSError, Unavailable):
            logger.warning("The artifacts of %s were not kept.", attempt.call.run.key, exc_info=True)
            attempt.log("The artifacts could not be kept.")
            return
        for other in others[:_LEFT_OUT_MAX]:
            attempt.log(f"The artifact {other.name} is not kept: {other.why}.")

    def _clear(self, attempt: Attempt, *, keep_checkpoint: bool) -> None:
        try:
            attempt.place.clear(keep_checkpoint=keep_checkpoint)
        except OSError:  # safe: a folder that stays takes room and nothing else, and its outcome counts
            logger.warning("The folder %s could not be cleared.", attempt.place.root, exc_info=True)


def steps_within(http_may_reach: Iterable[str], images: Images | None = None) -> Steps:
    """What a place says of steps that are saved there, if another place with these lists runs them."""
    containers = {"container": images.offer} if images is not None else {}
    return Steps({**Http(http_may_reach).offers, **containers}, Plugins())


def _outcome(operator: Operator, attempt: Attempt) -> Outcome:
    try:
        return operator.execute(attempt)
    except InvalidInput as refused:
        where = f"{refused.path}: " if refused.path else ""
        return _permanent("InvalidInput", f"{where}{refused.message}")


def _key(call: Call) -> _Key:
    return call.run.key, call.task.id, call.run.epoch


def _permanent(error: str, message: str) -> Failure:
    return Failure(error, message, FailureClass.PERMANENT)
