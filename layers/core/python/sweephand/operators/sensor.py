"""A sensor's look at a web address: one short request, to where `http` may go too."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from msgspec.structs import replace

from sweephand.calls import Outcome, Succeeded
from sweephand.domain.retry import Failure, FailureClass
from sweephand.messages import Again
from sweephand.operators.exchange import Request, Response
from sweephand.operators.http import BYTES_MAX, Http, answered, shown_headers
from sweephand.operators.operator import Attempt

__all__ = ["HttpSensor"]

_EXPECTED: Final = frozenset({200})
_NOT_YET: Final = frozenset({404, 408, 409, 410, 412, 423, 424, 425, 429})
"""Of the 4xx, those that pass by themselves; any other says that the question is wrong."""
_NOW: Final = timedelta(0)
"""How often to look is for the engine to say."""


class HttpSensor:
    """Asks once, and says what it saw."""

    def __init__(self, http: Http) -> None:
        self._http = http

    def execute(self, attempt: Attempt) -> Outcome:
        task = attempt.call.task
        asking = replace(attempt, call=replace(attempt.call, task=replace(task, kind="http", spec=task.spec["http"])))
        expected = frozenset(asking.option("expect", ())) or _EXPECTED
        wanted = asking.option("contains")

        def judge(request: Request, response: Response) -> Outcome:
            if response.status in expected:
                return _found(response, wanted)
            if 400 <= response.status < 500 and response.status not in _NOT_YET:
                return Failure(f"Http{response.status}", answered(request, response), FailureClass.PERMANENT)
            return Again(_NOW, answered(request, response))

        return self._http.ask(asking, judge, final=expected, kept_max=BYTES_MAX if wanted else 0)


def _found(response: Response, wanted: Any) -> Outcome:
    if wanted is not None and str(wanted).encode() not in response.beginning:
        return Again(_NOW, f"{response.url.host} answered {response.status}, and not yet with what it should contain")
    return Succeeded({"status": response.status, "size": response.size, "headers": shown_headers(response)})
