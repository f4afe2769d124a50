"""Keep the status view up to date from what changed; rebuild it from the truths (004-RM5)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sweephand.domain.ids import JobName, Namespace, RunId
from sweephand.domain.run import Run
from sweephand.domain.status import StatusRow, latest, listed
from sweephand.ports import World

_PAGE = 200


def project(world: World, batch: str, runs: Iterable[Run]) -> int:
    """Add a batch of changed runs to the view: one write per namespace and hour, not per run.

    `batch` names the batch, so that a replayed one replaces itself; rows carry revisions, so order does not matter.
    """
    by_namespace: dict[Namespace, list[StatusRow]] = {}
    for run in runs:
        row = listed(run)
        if row is not None:
            by_namespace.setdefault(run.key.job.namespace, []).append(row)
    for namespace, rows in by_namespace.items():
        world.views.append(namespace, batch, latest(rows))
    return sum(len(rows) for rows in by_namespace.values())


def rebuild(world: World, namespace: Namespace) -> int:
    """Clear the namespace's view and derive it again from the runs themselves."""
    world.views.clear(namespace)
    count = 0
    for number, page in enumerate(_all_runs(world, namespace)):
        count += project(world, f"rebuild-{number:08d}", page)
    return count


def _all_runs(world: World, namespace: Namespace) -> Iterator[list[Run]]:
    after: JobName | None = None
    while heads := world.jobs.heads(namespace, after=after, limit=_PAGE):
        for head in heads:
            since: RunId | None = None
            while page := world.runs.of_job(head.key, since=since, newest_first=False, limit=_PAGE):
                yield page
                since = RunId(page[-1].key.run_id + "!")
        after = heads[-1].key.name
