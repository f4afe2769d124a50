"""Deliberate bugs, each a change of the product's source: a simulation that cannot find them proves nothing."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import FunctionType, ModuleType
from typing import Any


@dataclass(frozen=True)
class Mutant:
    """A bug: in this module, these pieces of source become those."""

    name: str
    module: str
    edits: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        return self.name


MUTANTS = (
    Mutant(
        "the dedup condition removed",
        "sweephand.embedded.runs",
        (("INSERT INTO runs", "INSERT OR REPLACE INTO runs"), (" ON CONFLICT (job, run_id) DO NOTHING", "")),
    ),
    Mutant(
        "the epoch check removed",
        "sweephand.engine.complete",
        (("        if run.epoch != epoch:\n", "        if run.epoch < 0:\n"),),
    ),
    Mutant(
        "the cursor moved before the put",
        "sweephand.engine.planning",
        (
            ("    created = _carry_out(world, drafts, now)\n    moves", "    moves"),
            (
                "    won = insist(lambda: world.jobs.advance(moves))\n",
                "    won = insist(lambda: world.jobs.advance(moves))\n    created = _carry_out(world, drafts, now)\n",
            ),
        ),
    ),
    Mutant(
        "a put conflict that does not send",
        "sweephand.engine.planning",
        ((" if is_new or _is_unstarted(world, run.key)]\n", " if is_new]\n"),),
    ),
    Mutant(
        "a loser that deletes the message",
        "sweephand.engine.attempt",
        (
            (' else _keep(case, ends_at, "owned")\n', ' else Attempted(Fate.DELETE, "owned")\n'),
            (
                '    return _keep(case, current.lease_until or case.now, "lost race")\n',
                '    return Attempted(Fate.DELETE, "lost race")\n',
            ),
        ),
    ),
    Mutant(
        "the start guard not waiting for its instant",
        "sweephand.domain.guard",
        (("    if now < run.start_at:\n", "    if now < head.created_at:\n"),),
    ),
    Mutant(
        "a slot never evicted",
        "sweephand.engine.holding",
        (("if not isinstance(answer, Start) and _evict(world, slot, need, now):", "if False:"),),
    ),
    Mutant(
        "pause deciding early",
        "sweephand.engine.pause",
        (
            (
                "    return switch(world, key, work_out) or present_head(world, key)\n",
                (
                    "    paused = switch(world, key, work_out) or present_head(world, key)\n"
                    "    from sweephand.domain.reasons import Reason\n"
                    "    for run in world.runs.of_job(key, limit=20):\n"
                    "        if run.state == 'planned' and run.is_scheduled:\n"
                    "            reason = Reason.of('paused: too early')\n"
                    "            nonce = world.dice.nonce()\n"
                    "            world.runs.move(run, run.skipped(reason, now=world.clock.now(), nonce=nonce))\n"
                    "    return paused\n"
                ),
            ),
        ),
    ),
)

DAG_MUTANTS = (
    Mutant(
        "going to sleep without looking whether something ended",
        "sweephand.embedded.dags",
        ((' AND rev = ? AND noted = ?"', ' AND rev = ? AND noted >= 0 * ?"'),),
    ),
    Mutant(
        "waking before the end is stored",
        "sweephand.engine.complete",
        (
            (
                "        if move(world, run, after):\n            run = after\n            break\n",
                (
                    "        if after.is_terminal and run.key.task:\n            note(world, run.key)\n"
                    "        if move(world, run, after):\n            run = after\n            break\n"
                ),
            ),
            ("    if run.is_terminal and (run.key.task or (", "    if run.is_terminal and (("),
        ),
    ),
    Mutant(
        "the token cleared before the call answered",
        "sweephand.engine.wake",
        (
            (
                "    if world.machines is not None:\n",
                "    world.dags.woken(progress)\n    if world.machines is not None:\n",
            ),
            (
                "        send_on(world, progress.run)\n    world.dags.woken(progress)\n",
                "        send_on(world, progress.run)\n",
            ),
        ),
    ),
    Mutant(
        "a token for every sleeper",
        "sweephand.engine.tend",
        (
            (
                "advance(world, run.key, token=world.dice.nonce(), look=look)",
                "advance(world, run.key, token='message', look=look)",
            ),
        ),
    ),
)
RULE_MUTANTS = (
    Mutant(
        "a skipped parent taken for none",
        "sweephand.domain.ready",
        (("            seen |= byte & _SEEN\n", "            seen |= byte & _SEEN & ~SKIPPED\n"),),
    ),
    Mutant(
        "a branch that nobody listens to",
        "sweephand.domain.ready",
        (("            if choice is not None and task not in choice:\n", "            if choice == task:\n"),),
    ),
    Mutant(
        "a task that starts before its branch has ended",
        "sweephand.domain.ready",
        (("            if self.states[branch] not in ENDED:\n", "            if self.states[branch] < 0:\n"),),
    ),
)
"""Bugs in what the rules say."""

MACHINE_MUTANTS = (
    *DAG_MUTANTS[:3],
    Mutant(
        "a token cleared whoever sleeps under it",
        "sweephand.embedded.dags",
        (
            (
                '"UPDATE progress SET token = NULL, waking_until = NULL WHERE run = ? AND token = ?"',
                '"UPDATE progress SET token = NULL, waking_until = NULL WHERE run = ? AND ? IS NOT NULL"',
            ),
        ),
    ),
)
"""Those of the world in which executions of a machine advance the runs."""


@contextmanager
def applied(mutant: Mutant) -> Iterator[None]:
    """The product with the bug in it, for a while."""
    module = importlib.import_module(mutant.module)
    source = inspect.getsource(module)
    for old, new in mutant.edits:
        assert source.count(old) == 1, f"{mutant.module} no longer has {old!r} exactly once"
        source = source.replace(old, new)
    scratch = ModuleType(module.__name__)
    scratch.__file__ = module.__file__
    exec(compile(source, str(module.__file__), "exec"), scratch.__dict__)
    undo = list(_graft(module, module.__dict__, scratch.__dict__))
    try:
        assert undo, f"{mutant} changes nothing that runs"
        yield
    finally:
        for target, name, value in undo:
            setattr(target, name, value)


def _graft(owner: Any, own: Mapping[str, Any], mutated: Mapping[str, Any]) -> Iterator[tuple[Any, str, Any]]:
    """Give functions and methods the mutated code, since others have imported them by name; what was there before."""
    module = owner.__name__ if isinstance(owner, ModuleType) else owner.__module__
    for name, changed in mutated.items():
        original = own.get(name)
        if isinstance(original, FunctionType) and original.__module__ == module:
            if original.__code__ != changed.__code__:
                yield original, "__code__", original.__code__
                original.__code__ = changed.__code__
        elif isinstance(original, type) and original.__module__ == module and isinstance(changed, type):
            yield from _graft(original, vars(original), vars(changed))
        elif isinstance(original, str) and original != changed and isinstance(owner, ModuleType):
            yield owner, name, original
            setattr(owner, name, changed)
