"""`event`: an event for a bus of EventBridge; without `bus`, for the account's default one."""

from __future__ import annotations

import json
from typing import Final

from sweephand.calls import Outcome, Succeeded
from sweephand.domain.targets import Arn
from sweephand.domain.templates import as_text
from sweephand.operators.aws.beside import with_run
from sweephand.operators.aws.clients import Caller, made, soon
from sweephand.operators.aws.failures import Failed, failure_of_code
from sweephand.operators.operator import Attempt

_DEFAULT: Final = "default"


class Event(Caller):
    """Puts events; that one was taken is success, whoever listens."""

    service, kind = "events", "event"

    def named(self, attempt: Attempt) -> Arn:
        return self._targets.find(self.kind, as_text(attempt.option("bus", _DEFAULT)), "bus")

    def call(self, attempt: Attempt) -> Outcome:
        within = soon(attempt.call)
        client, arn = self.target(attempt, within)
        entry = {
            "Source": as_text(attempt.option("source", "")),
            "DetailType": as_text(attempt.option("type", "")),
            "Detail": json.dumps(with_run(attempt.option("detail", {}), attempt.call)),
            "EventBusName": str(arn),
        }
        answer = made(client, "put_events", within, Entries=[entry])
        (told,) = answer["Entries"]
        if answer.get("FailedEntryCount") or "EventId" not in told:
            code, message = str(told.get("ErrorCode", "")), str(told.get("ErrorMessage", ""))
            raise Failed(failure_of_code(code, f"events:PutEvents: {message or code}"))
        return Succeeded({"eventId": told["EventId"]})
