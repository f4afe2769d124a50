"""Let a run of several tasks go on: it was just started, was woken, or nobody has said anything for minutes."""

from __future__ import annotations

from typing import Final

from sweephand.domain.ids import RunKey
from sweephand.engine.advance import Advanced, Step, advance
from sweephand.entrypoint import Context, Event, dag_machine, deployed, entrypoint

machine: Final = dag_machine()
world: Final = deployed(machine)


@entrypoint
def handler(event: Event, _context: Context) -> Advanced:
    run, token = RunKey.of(event["run"]), event["token"]
    nobody_woke_it = "Error" in event["came"]
    advanced = advance(world, run, token=token, generation=event["generation"], look=nobody_woke_it)
    if advanced.step is not Step.SLEEP:
        machine.answer(token, advanced.step)
    return advanced
