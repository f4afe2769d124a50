"""Results that are taken over (000-H6): what succeeded under the same key, not long ago, is not run again.

What is remembered is only which run it was; its output stays where outputs are. An entry that is missing, because its
writer died or the store was away, costs one more execution. Two runs at once both run, and the later is remembered.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from hashlib import blake2b
from typing import Any

from sweephand.calls import Call, Outcome, Succeeded
from sweephand.domain.ids import RunKey
from sweephand.domain.job import Cache, Job
from sweephand.domain.output import Kept
from sweephand.domain.reasons import ReasonCode
from sweephand.domain.retry import Failure, FailureClass
from sweephand.domain.run import Run, RunState, Trigger
from sweephand.domain.templates import as_text, resolve, run_facts
from sweephand.engine.outputs import output_of, upstream_of
from sweephand.engine.whereabouts import task_of
from sweephand.errors import InvalidInput, Unavailable
from sweephand.ports import World


def recall(world: World, call: Call, job: Job) -> Outcome | None:
    """What the claimed run comes to without being run; None where it has to be. Repeating it reads again.

    A rerun is always run: somebody wants it anew.
    """
    run, cache = call.run, _cache_of(job)
    if cache is None or run.trigger is Trigger.RERUN:
        return None
    try:
        key = _key(run, job, cache, call.known)
    except InvalidInput as refused:
        return Failure("InvalidInput", f"{refused.path}: {refused.message}", FailureClass.PERMANENT)
    try:
        found = world.runs.noted(run.key.job.namespace, key)
        source = world.runs.get(RunKey.at(str(run.key.job), found)) if found else None
        if source is not None and isinstance(source.output, Kept) and output_of(world.artifacts, source) is None:
            return None  # its file is gone, since room was needed, and nothing would be taken over
    except Unavailable:
        return None  # safe: running it again is always right, and the run is claimed already
    if source is None or source.state is not RunState.SUCCEEDED or source.ended_at is None:
        return None
    # By its time too: the entry may have been written under a longer ttl.
    return Succeeded(source.output, source.key.run_id) if world.clock.now() < source.ended_at + cache.ttl else None


def remember(world: World, run: Run, job: Job) -> None:
    """Let runs to come take over what this one came to, if it was run. Safe to repeat, and to leave out."""
    cache = _cache_of(job)
    was_run = run.reason is None or run.reason.code not in (ReasonCode.CACHED, ReasonCode.MARKED)
    if cache is None or run.state is not RunState.SUCCEEDED or run.ended_at is None or not was_run:
        return
    with suppress(InvalidInput, Unavailable):  # safe: the next run is run
        upstream, task = upstream_of(world, run), task_of(job)
        known = {"params": {**job.params, **upstream.params}, "run": run_facts(run, job, task), **upstream.known}
        where = str(run.key).removeprefix(f"{run.key.job}/")
        world.runs.note(run.key.job.namespace, _key(run, job, cache, known), where, until=run.ended_at + cache.ttl)


def _cache_of(job: Job) -> Cache | None:
    return None if job.is_dag else task_of(job).cache or job.cache


def _key(run: Run, job: Job, cache: Cache, known: Mapping[str, Any]) -> str:
    """The resolved key, within its job, its task and what that runs: an edit of the step makes all others."""
    task = task_of(job)
    told = [run.key.job.name, task.id, task.kind, task.spec, as_text(resolve(cache.key, known, "cache.key"))]
    digest = blake2b(json.dumps(told, sort_keys=True).encode(), digest_size=20).hexdigest()
    return f"cache/{digest}"
