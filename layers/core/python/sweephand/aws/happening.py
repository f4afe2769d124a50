"""An event of EventBridge, as a rule of the deployment hands it over: with the namespace whose jobs hear of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sweephand.domain.events import Event
from sweephand.domain.ids import Namespace, check_name
from sweephand.errors import Defect, InvalidInput

__all__ = ["handed_over", "happening_of"]


def handed_over(namespace: str, event: Mapping[str, Any]) -> dict[str, Any]:
    """What a rule's target gets: infra writes the same as an input template."""
    return {"namespace": namespace, "event": event}


def happening_of(told: Mapping[str, Any]) -> tuple[Namespace, Event]:
    """Whose event it is, and what happened. Its id is EventBridge's own, so that a second delivery is recognised."""
    try:
        event = told["event"]
        found = Event(event["source"], event["detail-type"], event.get("detail") or {}, event["id"])
        return Namespace(check_name(told["namespace"], path="namespace")), found
    except (KeyError, TypeError, AttributeError, InvalidInput) as error:
        raise Defect(f"No rule of ours hands over such an event: {error!r}.") from error
