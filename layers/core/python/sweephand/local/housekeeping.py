"""What goes on beside the runs: the status view, the audit, the dead letters, old logs and artifacts."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from sweephand.calls import Forgetting, Target
from sweephand.domain.ids import JobName
from sweephand.domain.run import Run
from sweephand.embedded import Stores
from sweephand.embedded.views import Feed
from sweephand.engine.audit import RECENT, Audited, audit_apart
from sweephand.engine.backfill import see_to_backfills
from sweephand.engine.follow import follow
from sweephand.engine.issue import OWN
from sweephand.engine.watch import watch
from sweephand.ports import World

logger: Final = logging.getLogger("sweephand.local")

PROJECT_EVERY: Final = timedelta(seconds=1)
_BATCH: Final = 500

BACKFILLS_EVERY: Final = timedelta(seconds=15)

AUDIT_EVERY: Final = timedelta(minutes=1)
AUDIT_WHOLE_EVERY: Final = timedelta(hours=1)
_AUDIT_RECENT: Final = timedelta(minutes=30)
_ONE_IN: Final = 20
"""Housekeeping takes one of so many seconds, however much there is of it."""
_PAGE: Final = 200
_DEAD_LETTERS: Final = 1_000

FORGET_EVERY: Final = timedelta(hours=1)
KEEP_FILES: Final = timedelta(days=30)
LOGS_BYTES_MAX: Final = 4 * 1024**3
ARTIFACTS_BYTES_MAX: Final = 16 * 1024**3
"""What all of them may take together; beyond it the oldest go first."""


class Projection:
    """Brings the status view up to date from the feed; how far it came is stored, so that a restart goes on there."""

    def __init__(self, world: World, feed: Feed, notice: Callable[[Run], None]) -> None:
        self._world = world
        self._feed = feed
        self._notice = notice

    def step(self) -> timedelta:
        """Project one batch. Two processes may project the same one: it replaces itself."""
        begun_at = self._world.clock.now()
        stored = self._world.shared.get(OWN, "position", "views")
        revision, after = (stored[0], int(stored[1]["after"])) if stored else (0, 0)
        changed = self._feed.read(after, _BATCH)
        if not changed:
            return PROJECT_EVERY
        follow(self._world, f"feed-{after:016d}", [run for _, run in changed])
        # Where another process came first, the next step begins at its mark.
        self._world.shared.put(OWN, "position", "views", {"after": changed[-1][0]}, expected=revision)
        for _, run in changed:
            self._notice(run)
        if len(changed) < _BATCH:
            return PROJECT_EVERY
        return min(PROJECT_EVERY, (self._world.clock.now() - begun_at) * _ONE_IN)


class Reconciliation:
    """Audits every namespace: recent runs often, a whole day now and then."""

    def __init__(self, world: World, is_stopping: Callable[[], bool]) -> None:
        self._world = world
        self._is_stopping = is_stopping
        self._first_at = world.clock.now() + AUDIT_EVERY
        self._whole_at: datetime | None = None

    def step(self) -> timedelta:
        """One pass; the next comes after a pause that keeps its cost low, the first not while everything starts."""
        begun_at = self._world.clock.now()
        if begun_at < self._first_at:
            return self._first_at - begun_at
        whole = self._whole_at is None or begun_at - self._whole_at >= AUDIT_WHOLE_EVERY
        audited = self._audit(RECENT if whole else _AUDIT_RECENT)
        if whole:
            self._whole_at = begun_at
        if audited.missing or audited.extra:
            logger.error("The ledger has holes or extras: %s", audited)
        elif audited.rearmed or audited.resent:
            logger.warning("The audit sent again what was overdue: %s", audited)
        return max(AUDIT_EVERY, (self._world.clock.now() - begun_at) * _ONE_IN)

    def _audit(self, recent: timedelta) -> Audited:
        audited = Audited()
        for namespace in self._world.jobs.namespaces():
            after: JobName | None = None
            while heads := self._world.jobs.heads(namespace, after=after, limit=_PAGE):
                for head in heads:
                    if self._is_stopping():
                        return audited
                    audited += audit_apart(self._world, head, recent=recent)
                after = heads[-1].key.name
        return audited


def see_to_dead_letters(world: World) -> timedelta:
    """Send dead messages of open runs again."""
    for letter in world.inbox.dead(most=_DEAD_LETTERS):
        logger.warning("A dead letter: %s: %s", watch(world, letter), letter.body)
    return AUDIT_EVERY


def go_on_with_backfills(world: World) -> timedelta:
    """In case whoever ended the last of a backfill's runs, or asked for it, died before that was followed."""
    see_to_backfills(world)
    return BACKFILLS_EVERY


def forget_files(stores: Stores, target: Target, *, now: datetime) -> timedelta:
    """Remove the logs and artifacts that are old, or too much, and what attempts left that are not gone on with."""
    left = target.forget(before=now - KEEP_FILES) if isinstance(target, Forgetting) else 0
    if left:
        logger.info("What was left of %d tasks that were not gone on with was removed.", left)
    logs = stores.logs.forget(before=now - KEEP_FILES, bytes_max=LOGS_BYTES_MAX)
    artifacts = stores.artifacts.forget(before=now - KEEP_FILES, bytes_max=ARTIFACTS_BYTES_MAX)
    if logs or artifacts:
        logger.info("%d old logs and the artifacts of %d attempts were removed.", logs, artifacts)
    return FORGET_EVERY
