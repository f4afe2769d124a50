"""What `execute` is told, and what it answers: a call and an outcome as JSON can hold them.

It is all that crosses into the function where users' code runs, and all that comes back.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final, assert_never

from sweephand.calls import Call, Outcome, Skipped, Succeeded
from sweephand.domain.ids import RunKey
from sweephand.domain.job import Task
from sweephand.domain.output import decode_output, encode_output
from sweephand.domain.retry import Failure
from sweephand.domain.run import Run, RunState
from sweephand.errors import InvalidInput
from sweephand.messages import Again, Unstarted
from sweephand.secrets import Bound, Values, order_of

_FORMAT: Final = 1
_UNREADABLE: Final = (ValueError, KeyError, TypeError, AttributeError, OverflowError)


Seal = Callable[[str, Bound], str]
Unseal = Callable[[str, Bound], str | None]


def encode_call(call: Call, *, seal: Seal | None = None) -> dict[str, Any]:
    """The call without what only the control plane needs to know of its run.

    Its secrets are beside it as they are, or sealed, where whoever passes it on keeps a copy.
    """
    values = dict(call.secrets.by_name)
    given: dict[str, Any] = {"secrets": values} if values else {}
    if values and seal is not None:
        given = {"sealed": seal(json.dumps(values), order_of(str(call.run.key), call.run.epoch))}
    return given | {
        "v": _FORMAT,
        "run": str(call.run.key),
        "fireAt": call.run.fire_at.isoformat(),
        "startedAt": call.run.started_at.isoformat() if call.run.started_at else None,
        "epoch": call.run.epoch,
        "attempt": call.run.attempt,
        "lost": call.run.lost,
        "task": {"id": call.task.id, "kind": call.task.kind, "spec": dict(call.task.spec)},
        "params": dict(call.params),
        "idempotencyKey": call.idempotency_key,
        "timeoutSeconds": call.timeout.total_seconds(),
        "context": dict(call.context),
        **({"upstream": dict(call.upstream)} if call.upstream else {}),
    }


def decode_call(document: Mapping[str, Any], *, unseal: Unseal | None = None) -> Call:
    """The call that was encoded; anything else is refused. `unseal` opens the secrets of one that has them sealed."""
    try:
        if document["v"] != _FORMAT:
            raise InvalidInput(f"The call has format {document['v']}, which is not known here.", "call")
        fire_at, task = datetime.fromisoformat(document["fireAt"]), document["task"]
        started = document.get("startedAt")
        run = Run(
            RunKey.of(document["run"]),
            fire_at,
            fire_at,
            created_at=fire_at,
            changed_at=fire_at,
            state=RunState.RUNNING,
            epoch=int(document["epoch"]),
            attempt=int(document["attempt"]),
            lost=int(document.get("lost", 0)),
            started_at=datetime.fromisoformat(started) if started else None,
        )
        return Call(
            run,
            Task(task["id"], task["kind"], task["spec"]),
            document["params"],
            document["idempotencyKey"],
            timedelta(seconds=document["timeoutSeconds"]),
            document["context"],
            document.get("upstream") or {},
            secrets=_values(document, unseal),
        )
    except _UNREADABLE as error:
        raise InvalidInput(f"The call is not readable: {error!r}.", "call") from error


def _values(document: Mapping[str, Any], unseal: Unseal | None) -> Values:
    if "sealed" not in document:
        return Values(document.get("secrets") or {})
    text = unseal(document["sealed"], order_of(document["run"], int(document["epoch"]))) if unseal else None
    if text is None:
        raise InvalidInput("The call's secrets cannot be opened here.", "call.sealed")
    return Values(json.loads(text))


def encode_outcome(outcome: Outcome) -> dict[str, Any]:
    match outcome:
        case Succeeded(output):
            return {"succeeded": {"output": encode_output(output)}}
        case Skipped(reason):
            return {"skipped": {"reason": reason}}
        case Unstarted(reason):
            return {"unstarted": {"reason": reason}}
        case Again(after, reason):
            return {"again": {"afterSeconds": after.total_seconds(), "reason": reason}}
        case Failure():
            return {"failed": outcome.encode()}
        case _:
            assert_never(outcome)


def decode_outcome(document: Mapping[str, Any]) -> Outcome:
    """The outcome that was encoded; anything else is refused."""
    try:
        ((kind, told),) = document.items()
        match kind:
            case "succeeded":
                return Succeeded(decode_output(told["output"]))
            case "skipped":
                return Skipped(str(told["reason"]))
            case "unstarted":
                return Unstarted(str(told["reason"]))
            case "again":
                return Again(timedelta(seconds=told["afterSeconds"]), str(told["reason"]))
            case "failed":
                return Failure.decode(told)
            case _:
                raise InvalidInput(f"An outcome cannot be {kind}.", "outcome")
    except _UNREADABLE as error:
        raise InvalidInput(f"The outcome is not readable: {error!r}.", "outcome") from error
