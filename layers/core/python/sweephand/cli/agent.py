"""`sweephand agent`: does one attempt that it was launched for, and reports it."""

from __future__ import annotations

import logging
import os
import signal
from types import FrameType

import click

from sweephand.cli.program import program
from sweephand.clock import SystemClock


@program.command(example="sweephand agent", answers=False)
@click.pass_context
def agent(context: click.Context) -> None:
    """Do the work of one lease, for which it was launched; SIGTERM saves what there is and has it tried again.

    It is told by SWEEPHAND_URL, SWEEPHAND_LEASE and SWEEPHAND_EPOCH: everybody can see words, and nobody variables.
    """
    # Imported late: no other command needs what runs tasks.
    from sweephand.agent.equipment import Told
    from sweephand.agent.work import Agent

    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    logging.getLogger("httpx").setLevel(logging.WARNING)  # its lines have the lease in their addresses
    clock = SystemClock()
    told = Told.of(os.environ)
    lease = told.own_lease(clock)
    worker = Agent(lease, told.equip(os.environ, clock), beat_every=told.beat_every)

    def hear(_number: int, _frame: FrameType | None) -> None:
        worker.stop()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, hear)
    try:
        done = worker.run()
    finally:
        lease.close()
    click.echo(f"{done.name.lower()}", err=True)
    context.exit(done.value)
