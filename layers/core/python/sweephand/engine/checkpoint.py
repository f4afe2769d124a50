"""What an attempt leaves to the next one of its run, if it does not come to an end."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any, Final

from sweephand.domain.ids import RunKey
from sweephand.domain.run import Run
from sweephand.engine.edit import Document, edit
from sweephand.ports import World

CHECKPOINT: Final = "checkpoint"


def save_checkpoint(world: World, run: Run, value: Any) -> None:
    """Keep what the next attempt begins with; an attempt that was taken over since has no say in it."""

    def saved(document: Document | None) -> Document | None:
        return None if document and document["epoch"] > run.epoch else {"epoch": run.epoch, "value": value}

    edit(world, run.key.job.namespace, CHECKPOINT, _name(run.key), saved)


def read_checkpoint(world: World, key: RunKey) -> Any:
    """What the last attempt left; None where it left nothing."""
    stored = world.shared.get(key.job.namespace, CHECKPOINT, _name(key))
    return stored[1]["value"] if stored else None


def forget_checkpoint(world: World, key: RunKey) -> None:
    """The run has ended: nobody begins with it any more. Safe to repeat."""
    stored = world.shared.get(key.job.namespace, CHECKPOINT, _name(key))
    if stored:
        world.shared.delete(key.job.namespace, CHECKPOINT, _name(key), expected=stored[0])


def _name(key: RunKey) -> str:
    return blake2b(str(key).encode(), digest_size=16).hexdigest()
