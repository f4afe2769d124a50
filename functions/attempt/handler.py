"""A run was delivered, or its outcome is reported by the machine that waited for it."""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import asdict

from sweephand.aws import outcome_of_machine
from sweephand.domain.ids import RunKey
from sweephand.engine.attempt import Fate, attempt, report
from sweephand.entrypoint import Context, Event, attempting, deal_with, entrypoint, logger
from sweephand.messages import AttemptRun, decode_as
from sweephand.ports import Delivery

world: Final = attempting()


@entrypoint
def handler(event: Event, _context: Context) -> dict[str, Any]:
    if "report" in event:
        told = event["report"]
        outcome = outcome_of_machine(told["came"])
        return asdict(report(world, RunKey.of(told["run"]), epoch=told["epoch"], outcome=outcome))
    return deal_with(world, event, attempted)


def attempted(delivery: Delivery) -> bool:
    """Deal with one delivery; whether its message has done its work."""
    message = decode_as(AttemptRun, delivery.body)
    did = attempt(world, message, delivery)
    logger.info("attempted", extra={"run": str(message.run), "event": did.event, "fate": str(did.fate)})
    if did.fate is Fate.KEEP:
        world.inbox.keep(delivery, did.hold)
    return did.fate is Fate.DELETE
