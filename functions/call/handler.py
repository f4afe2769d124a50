"""Call an AWS service for a task, or stop what one has started: here are rights to what was listed, and no others."""

from __future__ import annotations

from typing import Any, Final

from sweephand.entrypoint import calling
from sweephand.orders import decode_call, encode_outcome

operators: Final = calling()


def handler(event: dict[str, Any], _context: object) -> dict[str, Any] | None:
    if "abandon" in event:
        operators.stop(decode_call(event["abandon"]))
        return None
    return encode_outcome(operators.execute(decode_call(event)))
