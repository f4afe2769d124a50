"""Job files changed, or an hour has passed: bring the jobs in line with the files."""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import asdict

from sweephand.api.app import ON_AWS
from sweephand.api.filing import ApiFiling, is_job_file
from sweephand.domain.ids import Namespace
from sweephand.engine.scan import scan
from sweephand.entrypoint import Context, Event, deployed, entrypoint, images, job_files, settings, targets
from sweephand.operators import steps_within

world: Final = deployed()
steps: Final = steps_within(settings().reachable, images())
filing: Final = ApiFiling(world, kinds=ON_AWS | targets().kinds, operators=steps, targets=targets())


@entrypoint
def handler(_event: Event, _context: Context) -> dict[str, Any]:
    files = job_files(world, is_job_file)
    removes = not settings().keep_jobs
    return {
        namespace: asdict(scan(world, Namespace(namespace), files.of(namespace), filing, removes=removes))
        for namespace in sorted({*files.namespaces, *world.jobs.namespaces()})
    }
