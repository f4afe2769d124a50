"""`lambda`: a function is invoked and waited for; with `async: true`, that it was accepted is success.

An error of the function's own is permanent, since its code would do the same again, unless `retry.on` names its type.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from sweephand.calls import Outcome, Succeeded
from sweephand.domain.limits import OUTPUT_BYTES_MAX
from sweephand.domain.retry import Failure
from sweephand.domain.targets import Arn
from sweephand.domain.templates import as_text
from sweephand.operators.aws.answers import kept, too_large
from sweephand.operators.aws.beside import with_run
from sweephand.operators.aws.clients import Caller, made, soon
from sweephand.operators.aws.failures import Failed, permanent
from sweephand.operators.operator import Attempt

_ERROR_BYTES_MAX: Final = 65_536
"""An error comes with its traceback."""


class Function(Caller):
    """Invokes functions. One that runs cannot be stopped: when its task is cancelled, nobody hears its answer."""

    service = kind = "lambda"

    def named(self, attempt: Attempt) -> Arn:
        qualifier = as_text(attempt.option("qualifier", ""))
        return self._targets.find(self.kind, as_text(attempt.option("value", "")), self.kind, qualifier=qualifier)

    def call(self, attempt: Attempt) -> Outcome:
        is_async = attempt.call.task.spec.get("async") is True
        within = soon(attempt.call) if is_async else attempt.call.timeout
        client, arn = self.target(attempt, within)
        answer = made(
            client,
            "invoke",
            within,
            FunctionName=str(arn),
            InvocationType="Event" if is_async else "RequestResponse",
            Payload=json.dumps(with_run(attempt.option("payload", {}), attempt.call)).encode(),
        )
        if is_async:
            return Succeeded({"requestId": answer.get("ResponseMetadata", {}).get("RequestId")})
        content = answer["Payload"].read(_ERROR_BYTES_MAX)
        if "FunctionError" in answer:
            raise Failed(_told(content))
        if len(content) > OUTPUT_BYTES_MAX:
            raise too_large()
        return kept(_read(content))


def _read(content: bytes) -> Any:
    try:
        return json.loads(content or b"null")
    except (ValueError, RecursionError) as error:
        raise Failed(permanent("InvalidOutput", f"The function's answer is not JSON: {error}.")) from error


def _told(content: bytes) -> Failure:
    """The function's error in its own words."""
    try:
        told = json.loads(content)
    except (ValueError, RecursionError):
        told = None
    if not isinstance(told, Mapping):
        return permanent("FunctionError", content.decode(errors="replace") or "The function failed.")
    return permanent(str(told.get("errorType") or "FunctionError"), str(told.get("errorMessage") or "It failed."))
