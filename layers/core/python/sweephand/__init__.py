"""A cron and DAG scheduler that accounts for every fire time."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sweephand.client import Client
    from sweephand.dsl import group, index, item, job, params, run, step, task
    from sweephand.within import checkpoint, output, progress, save_checkpoint

__all__ = [
    "Client",
    "__version__",
    "checkpoint",
    "group",
    "index",
    "item",
    "job",
    "output",
    "params",
    "progress",
    "run",
    "save_checkpoint",
    "step",
    "task",
]

__version__ = "0.1.0"
"""Here and not in the package's metadata, which a Lambda layer does not have."""

_WITHIN = ("checkpoint", "output", "progress", "save_checkpoint")


def __getattr__(name: str) -> object:
    # Imported late: the engine imports this package too, and needs neither an HTTP client nor job files for it.
    if name == "Client":
        from sweephand.client import Client

        return Client
    if name in _WITHIN:
        from sweephand import within

        return getattr(within, name)
    if name in __all__:
        from sweephand import dsl

        return getattr(dsl, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
