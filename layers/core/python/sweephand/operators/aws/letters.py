"""What messages to queues and to topics have in common: their text, their attributes, and what FIFO asks for."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any, Final

from sweephand.domain.templates import as_text
from sweephand.errors import InvalidInput
from sweephand.operators.aws.beside import NAME, run_of
from sweephand.operators.operator import Attempt

KEY: Final = "Sweephand-Idempotency-Key"
"""The attribute by which a receiver knows a message that was sent twice."""
_FIFO: Final = ".fifo"
_GROUP_CHARS_MAX: Final = 128


def text_of(attempt: Attempt, option: str) -> str:
    """A text as it is, all else as JSON; without one, what the run is."""
    given = attempt.option(option)
    text = as_text(given) if given is not None else json.dumps({NAME: run_of(attempt.call)})
    if not text:
        raise InvalidInput("A message cannot be empty.", option)
    return text


def attributes_of(attempt: Attempt) -> dict[str, Any]:
    """The task's own, and the idempotency key."""
    own = {name: as_text(value) for name, value in attempt.option("attributes", {}).items()}
    given = {**own, KEY: attempt.call.idempotency_key}
    return {name: {"DataType": "String", "StringValue": value} for name, value in given.items()}


def order_of(attempt: Attempt, name: str) -> dict[str, str]:
    """Group and deduplication: by default a job keeps its order, and the attempts of one run send one message."""
    group, once = (as_text(attempt.option(option, "")) for option in ("group", "deduplicationId"))
    if not name.endswith(_FIFO):
        if once:
            raise InvalidInput(f"'{name}' is not FIFO, and takes every message as a new one.", "deduplicationId")
        return {"MessageGroupId": group} if group else {}
    key = attempt.call.idempotency_key
    return {
        "MessageGroupId": group or attempt.call.run.key.job.name[:_GROUP_CHARS_MAX],
        "MessageDeduplicationId": once or sha256(key.encode()).hexdigest(),
    }
