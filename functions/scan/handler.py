"""Job files changed, or an hour has passed: bring the jobs in line with the files."""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import asdict

from sweephand.api.app import ON_AWS
from sweephand.api.filing import ApiFiling, is_job_file
from sweephand.engine.scan import known_namespaces, scan
from sweephand.entrypoint import Context, Event, deployed, entrypoint, images, job_files, logger, settings, targets
from sweephand.operators import steps_within

world: Final = deployed()
files: Final = job_files()
steps: Final = steps_within(settings().reachable, images())
filing: Final = ApiFiling(world, kinds=ON_AWS | targets().kinds, operators=steps, targets=targets())


@entrypoint
def handler(_event: Event, _context: Context) -> dict[str, Any]:
    found = files.by_namespace(is_job_file)
    known = known_namespaces(world, found)
    for namespace in sorted(found.keys() - known):
        logger.error("There are job files for the namespace %s, which nobody has made.", namespace)
    removes = not settings().keep_jobs
    folders = {namespace: files.folder(namespace, found.get(namespace, ())) for namespace in known}
    return {name: asdict(scan(world, name, folder, filing, removes=removes)) for name, folder in folders.items()}
