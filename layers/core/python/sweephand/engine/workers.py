"""Who pulls work, and what they hold."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from msgspec import Struct, field

from sweephand.domain.ids import Namespace
from sweephand.domain.run import RunState
from sweephand.engine.lease import worker_of
from sweephand.ports import World

WORKER: Final = "worker"
_NOTED_EVERY: Final = timedelta(seconds=30)
_FORGOTTEN_AFTER: Final = timedelta(days=1)
_FORGOTTEN_AT_ONCE: Final = 20
_LOOKED_AT_MAX: Final = 20_000
_PAGE: Final = 500


class WorkerSeen(Struct, frozen=True):
    """A worker that asked for work."""

    id: str
    seen_at: datetime
    queues: tuple[str, ...]
    holds: list[dict[str, Any]] = field(default_factory=list)


def seen(world: World, namespace: Namespace, worker: str, queues: Sequence[str]) -> None:
    """Note that a worker asked for work; not at every call, since a thousand workers ask every second."""
    now = world.clock.now()
    stored = world.shared.get(namespace, WORKER, worker)
    if stored and now - datetime.fromisoformat(stored[1]["seenAt"]) < _NOTED_EVERY:
        return
    document = {"seenAt": now.isoformat(), "queues": list(queues)}
    # Losing to another note of the same worker is fine: it was seen.
    world.shared.put(namespace, WORKER, worker, document, expected=stored[0] if stored else 0)
    if stored is None:
        _forget_some(world, namespace, now)


def _forget_some(world: World, namespace: Namespace, now: datetime) -> None:
    """A new worker takes the places of some that did not come again: the list is as long as there are workers."""
    for one in world.shared.listed(namespace, WORKER, limit=_FORGOTTEN_AT_ONCE):
        if now - datetime.fromisoformat(one.document["seenAt"]) >= _FORGOTTEN_AFTER:
            world.shared.delete(namespace, WORKER, one.name, expected=one.rev)


def workers(world: World, namespace: Namespace) -> list[WorkerSeen]:
    """Workers seen within a day, by id, each with the runs that it holds."""
    now = world.clock.now()
    held: dict[str, list[dict[str, Any]]] = {}
    since, until = now - _FORGOTTEN_AFTER, now + timedelta(seconds=1)
    for row in world.views.rows(namespace, since=since, until=until, limit=_LOOKED_AT_MAX):
        run = world.runs.get(row.run) if row.state is RunState.RUNNING else None
        owner = worker_of(run) if run is not None and run.state is RunState.RUNNING else None
        if run is not None and owner is not None:
            held.setdefault(owner, []).append(
                {"jobId": run.key.job.name, "runId": run.key.run_id, "attempt": run.attempt}
            )
    found: list[WorkerSeen] = []
    after: str | None = None
    while page := world.shared.listed(namespace, WORKER, after=after, limit=_PAGE):
        for one in page:
            seen_at = datetime.fromisoformat(one.document["seenAt"])
            if now - seen_at < _FORGOTTEN_AFTER:
                found.append(WorkerSeen(one.name, seen_at, tuple(one.document["queues"]), held.get(one.name, [])))
        after = page[-1].name
    return found
