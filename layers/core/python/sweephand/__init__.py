"""A cron and DAG scheduler that accounts for every fire time."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sweephand.client import Client
    from sweephand.task import checkpoint, output, progress, save_checkpoint

__all__ = ["Client", "__version__", "checkpoint", "output", "progress", "save_checkpoint"]

__version__ = "0.1.0"
"""Here and not in the package's metadata, which a Lambda layer does not have."""


def __getattr__(name: str) -> object:
    # Imported late: the engine imports this package too, and needs no HTTP client for it.
    if name == "Client":
        from sweephand.client import Client

        return Client
    if name in __all__:
        from sweephand import task

        return getattr(task, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
