"""`awsSdk`: any call of boto3 that is in the list; its answer, or what the JMESPath `query` picks, is the output."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from sweephand.calls import Outcome
from sweephand.domain.fields import nearest
from sweephand.domain.templates import as_text
from sweephand.errors import InvalidInput
from sweephand.operators.aws.answers import kept
from sweephand.operators.aws.clients import Caller, made
from sweephand.operators.operator import Attempt

_ROLE: Final = re.compile(r".*(role|instance_?profile)_?(arn|name)?s?", re.IGNORECASE)
"""An instance profile is a role for a machine."""


class Sdk(Caller):
    """Calls what nobody wrote an operator for."""

    kind = "awsSdk"

    def call(self, attempt: Attempt) -> Outcome:
        service, action, region = (as_text(attempt.option(one, "")) for one in ("service", "action", "region"))
        if not self._targets.actions:
            self._targets.check_action((f"{service}:{action}",), "action")
        params = attempt.option("params", {})
        _check_roles(params, "params")
        within = attempt.call.timeout
        picked = _query(attempt)
        client = self._clients.of(service, region or "*", within)
        method, operation = _operation(client, action)
        model = client.meta.service_model
        self._targets.check_action((f"{model.signing_name}:{operation}", f"{service}:{operation}"), "action")
        if model.operation_model(operation).has_event_stream_output:
            raise InvalidInput(
                f"{service}:{operation} answers in a stream of events, which no output can hold.", "action"
            )
        answer = made(client, method, within, **params)
        told = {name: value for name, value in answer.items() if name != "ResponseMetadata"}
        return kept(picked(told))


def _operation(client: Any, action: str) -> tuple[str, str]:
    """The method of the client, and the name of the operation; either may be written."""
    known: Mapping[str, str] = client.meta.method_to_api_mapping
    for method, operation in known.items():
        if action in {method, operation}:
            return method, operation
    service = client.meta.service_model.service_name
    raise InvalidInput(f"{service} has no action '{action[:64]}'{nearest(action, list(known.values()))}", "action")


def _check_roles(value: Any, path: str) -> None:
    """A role that a task hands to a service would lend it rights that the task does not have."""
    if isinstance(value, Mapping):
        for name, one in value.items():
            if _ROLE.fullmatch(name):
                raise InvalidInput("A task cannot hand a role to a service.", f"{path}.{name}")
            _check_roles(one, f"{path}.{name}")
    elif isinstance(value, list):
        for number, one in enumerate(value):
            _check_roles(one, f"{path}[{number}]")


def _query(attempt: Attempt) -> Callable[[Any], Any]:
    """What picks the output from the answer; a query that cannot be read is refused before anything is done."""
    query = attempt.call.task.spec.get("query")
    if query is None:
        return lambda answer: answer
    import jmespath  # type: ignore[import-untyped]  # it comes with boto3
    from jmespath.exceptions import JMESPathError  # type: ignore[import-untyped]

    try:
        search: Callable[[Any], Any] = jmespath.compile(query).search
    except JMESPathError as error:
        raise InvalidInput(f"The query cannot be read: {error}", "query") from error
    return search
