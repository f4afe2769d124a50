"""What is known of datasets, as people ask for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from sweephand.domain.ids import JobKey, JobName, Namespace
from sweephand.domain.job import Job
from sweephand.domain.occasions import Quantity
from sweephand.engine.lookup import present_job
from sweephand.engine.wire import DATASET, publishers_in, subscribers_in
from sweephand.ports import World


class Dataset(Struct, frozen=True):
    """Who publishes a dataset (a job, perhaps one of its tasks), who subscribes to it, and its last update."""

    name: str
    publishers: tuple[tuple[str, str | None], ...]
    subscribers: tuple[tuple[str, Quantity], ...]
    updated_at: str | None
    update_id: str | None

    @property
    def is_known(self) -> bool:
        """Whether anybody has to do with it still, or ever updated it."""
        return bool(self.publishers or self.subscribers or self.update_id)


def dataset_of(world: World, namespace: Namespace, name: str) -> Dataset | None:
    """One dataset. Reads only."""
    stored = world.shared.get(namespace, DATASET, name)
    found = _read(world, namespace, name, stored[1]) if stored else None
    return found if found is not None and found.is_known else None


def datasets_of(
    world: World, namespace: Namespace, *, after: str | None, limit: int
) -> tuple[list[Dataset], str | None]:
    """Datasets in the order of their names, and the name to go on after; None at the end. Reads only."""
    stored = world.shared.listed(namespace, DATASET, after=after, limit=limit + 1)
    found = [_read(world, namespace, one.name, one.document) for one in stored[:limit]]
    more = stored[limit - 1].name if len(stored) > limit else None
    return [one for one in found if one.is_known], more


def _read(world: World, namespace: Namespace, name: str, document: Mapping[str, Any]) -> Dataset:
    """Notes say too much: jobs are asked themselves."""
    updated = document.get("updated") or {}
    publishers = [one for job in publishers_in(document) for one in _published(world, namespace, job, name)]
    subscribers = []
    for job in subscribers_in(document):
        present = _present(world, namespace, job)
        if present is not None and name in present.datasets:
            subscribers.append((job, present.datasets_quantity))
    at = updated["at"].replace("+00:00", "Z") if updated else None
    return Dataset(name, tuple(publishers), tuple(subscribers), at, updated.get("id"))


def _published(world: World, namespace: Namespace, job: str, name: str) -> list[tuple[str, str | None]]:
    present = _present(world, namespace, job)
    if present is None:
        return []
    whole: list[tuple[str, str | None]] = [(job, None)] if name in present.publishes else []
    return whole + [(job, task.id) for task in present.tasks if name in task.publishes]


def _present(world: World, namespace: Namespace, job: str) -> Job | None:
    return present_job(world, JobKey(namespace, JobName(job)))
