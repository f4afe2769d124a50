"""Something happened elsewhere: run the jobs that listen for it."""

from __future__ import annotations

import json
from contextlib import suppress
from hashlib import blake2b

from sweephand.domain.events import Event
from sweephand.domain.ids import JobKey, JobName, Namespace
from sweephand.domain.run import Run, Trigger
from sweephand.engine.lookup import present_job
from sweephand.engine.trigger import trigger
from sweephand.engine.wire import listeners_of
from sweephand.errors import NotFound
from sweephand.ports import World


def occur(world: World, namespace: Namespace, event: Event) -> list[Run]:
    """A run of every job that listens for this event. The same id within a day gives the same runs again."""
    runs = []
    for name in listeners_of(world, namespace, event.source):
        key = JobKey(namespace, JobName(name))
        job = present_job(world, key)
        if job is None or not any(rule.accepts(event) for rule in job.events):
            continue
        same = _same(event) if event.id is not None else None
        params = {"event": event.as_params}
        with suppress(NotFound):  # it was deleted since we looked, which is no other listener's concern
            runs.append(trigger(world, key, params=params, idempotency_key=same, cause=Trigger.EVENT))
    return runs


def _same(event: Event) -> str:
    """One text for one source and id, which are any texts themselves."""
    return "event/" + blake2b(json.dumps([event.source, event.id]).encode(), digest_size=16).hexdigest()
