"""Step Functions as the simulated world has it: executions that advance runs, sleep under tokens, and sometimes die."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from itertools import count

from sweephand.domain.ids import RunKey
from sweephand.engine.advance import WAVES_MAX, Step, advance
from sweephand.engine.tend import settle
from sweephand.ports import World
from sweephand.topology import ADVANCE, SETTLE
from tests.simulation.cast import Stage, carried_out
from tests.simulation.clockwork import A_SECOND, Actor, Crash

LOOKS_AFTER = timedelta(minutes=5)
"""When an execution that nobody wakes comes again by itself."""
TRIES_MAX = 20


@dataclass(eq=False)
class Execution:
    """What keeps advancing a run: one for each of its generations."""

    run: RunKey
    generation: int
    status: str = "RUNNING"

    def __str__(self) -> str:
        return f"{str(self.run).partition('/')[2]}#{self.generation}"


class Executions:
    """All of them, and the `Machines` port; `answer` is what the function `advance` tells its own."""

    def __init__(self, stage: Stage, *, wild: bool) -> None:
        """In a wild world functions are called twice now and then, and an execution that nobody wakes looks."""
        self._stage = stage
        self._is_wild = wild
        self._work = stage.work
        self._all: dict[tuple[RunKey, int], Execution] = {}
        self._asleep: dict[str, Execution] = {}
        """By the token that it waits for."""
        self._numbers = count(1)

    def start(self, run: RunKey, *, generation: int) -> None:
        if (run, generation) not in self._all:
            self._all[run, generation] = execution = Execution(run, generation)
            self._advance(execution)

    def wake(self, token: str) -> None:
        self.answer(token, Step.ADVANCE)

    def answer(self, token: str, step: str) -> None:
        if (execution := self._asleep.pop(token, None)) is not None:
            self._work.at(self._work.now + self._a_moment(), partial(self._told, execution, step))

    @property
    def running(self) -> list[Execution]:
        return [execution for execution in self._all.values() if execution.status == "RUNNING"]

    def kill(self, execution: Execution) -> None:
        """Somebody stops it: whoever wakes it from now on wakes nobody."""
        self._work.tell(execution, "is stopped from outside")
        execution.status = "ABORTED"
        self._asleep = {token: one for token, one in self._asleep.items() if one is not execution}

    # States.

    def _advance(self, execution: Execution, *, look: bool = False, tries: int = 0) -> None:
        """A callback task: the answer to its token counts, whatever becomes of its function."""
        if execution.status != "RUNNING":
            return
        token = f"{execution}-{next(self._numbers)}"
        self._asleep[token] = execution
        if self._is_wild:
            self._work.at(self._work.now + LOOKS_AFTER, partial(self._look_again, execution, token))

        def function(world: World, answer: Callable[[str, str], None]) -> None:
            advanced = advance(world, execution.run, token=token, generation=execution.generation, look=look)
            if advanced.step is not Step.SLEEP:
                answer(token, advanced.step)

        def failed() -> None:
            if self._asleep.pop(token, None) is not None:
                self._try_again(execution, tries, partial(self._advance, execution, look=look, tries=tries + 1))

        self._invoke("advance", ADVANCE.timeout, function, failed)
        if self._is_wild and self._stage.weather.strikes("doubled", self._stage.weather.odds.doubled):
            self._invoke("advance", ADVANCE.timeout, function, lambda: None)

    def _look_again(self, execution: Execution, token: str) -> None:
        if self._asleep.pop(token, None) is not None:
            self._work.tell(execution, "was not woken, and looks")
            self._advance(execution, look=True)

    def _told(self, execution: Execution, step: str) -> None:
        match step:
            case Step.ADVANCE:
                self._advance(execution)
            case Step.SETTLE:
                self._settle(execution)
            case _:
                self._end(execution)

    def _settle(self, execution: Execution, *, tries: int = 0) -> None:
        def function(world: World, _answer: object) -> None:
            if (run := world.runs.get(execution.run)) is not None:
                settle(world, run)
            self._end(execution)

        def failed() -> None:
            self._try_again(execution, tries, partial(self._settle, execution, tries=tries + 1))

        self._invoke("settle", SETTLE.timeout, function, failed)

    def _end(self, execution: Execution, status: str = "SUCCEEDED") -> None:
        if execution.status == "RUNNING":
            execution.status = status

    def _try_again(self, execution: Execution, tries: int, again: Callable[[], None]) -> None:
        if tries == TRIES_MAX:
            self._work.tell(execution, "gives up")
            self._end(execution, "FAILED")
            return
        self._work.at(self._work.now + A_SECOND * min(60, 2**tries) * self._work.rng.random(), again)

    # Functions.

    def _invoke(
        self,
        name: str,
        within: timedelta,
        function: Callable[[World, Callable[[str, str], None]], None],
        failed: Callable[[], None],
    ) -> None:
        """A process of its own, ended where it takes too long; its failure is known once it is over."""
        ends_at = self._work.now + within
        pending = [failed]

        def fail() -> None:
            while pending:
                pending.pop()()

        def life(actor: Actor) -> None:
            answer = self._stage.seen(actor, "machines", self).answer
            try:
                if carried_out(self._stage, actor, lambda: function(self._stage.world_of(actor), answer)):
                    pending.clear()
            except Crash:
                self._work.tell(actor, "DIES")
            fail()

        self._work.at(ends_at, fail)
        self._work.once(Actor(f"{name}{next(self._numbers)}", self._stage.skew(), life, ends_at))

    def _a_moment(self) -> timedelta:
        return A_SECOND * self._work.rng.uniform(0.01, 0.1)


def trouble(stage: Stage, executions: Executions, *, wild: bool, until: datetime) -> None:
    """What befalls executions now and then: their history is nearly full, or somebody stops them."""
    work, rng = stage.work, stage.work.rng

    def strike() -> None:
        if work.now > until:
            return
        if running := executions.running:
            execution = rng.choice(running)
            if wild and rng.random() < 0.5:
                executions.kill(execution)
            else:
                _fill(stage, execution)
        work.at(work.now + A_SECOND * rng.expovariate(1 / 400), strike)

    work.at(work.now, strike)


def _fill(stage: Stage, execution: Execution) -> None:
    """The execution has been at it for long: all in one moment, since in truth it takes thousands of waves."""
    dags = stage.ground.stores.dags
    progress = dags.get(execution.run)
    if progress is None or progress.generation != execution.generation or progress.rev == 0:
        return
    later = progress.moved(nonce=f"full-{stage.work.now}", waves=WAVES_MAX - 1, changed=progress.changed)
    if dags.absorb(progress, later) is not None and progress.token is not None:
        dags.sleep(later, progress.token)
    stage.work.tell(execution, "has a history that is nearly full")
