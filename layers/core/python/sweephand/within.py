"""What a task's own Python code can say and ask while it runs: `from sweephand import checkpoint, progress`.

Whoever runs the task names the files in its environment. Where nobody does, such as in a test on one's own machine,
nothing is kept and nothing fails.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

__all__ = ["checkpoint", "output", "progress", "save_checkpoint"]


def checkpoint(default: Any = None) -> Any:
    """What an earlier attempt of this run saved last; `default` where there is nothing."""
    path = _path("CHECKPOINT")
    try:
        return json.loads(path.read_text()) if path else default
    except FileNotFoundError:
        return default


def save_checkpoint(value: Any) -> None:
    """Have the next attempt of this run begin with this, if there is one: anything that JSON has, up to 24 KB."""
    _write("CHECKPOINT", json.dumps(value, allow_nan=False))


def progress(percent: float) -> None:
    """How far it is: from 0 to 100."""
    _write("PROGRESS", str(int(min(max(percent, 0), 100))))


def output(value: Any) -> None:
    """What the task came to: anything that JSON has, up to 4 KB."""
    _write("OUTPUT", json.dumps(value, allow_nan=False))


def _path(name: str) -> Path | None:
    given = os.environ.get(f"SWEEPHAND_{name}")
    return Path(given) if given else None


def _write(name: str, text: str) -> None:
    """Whole or not at all: whoever reads it meanwhile sees what was there before."""
    path = _path(name)
    if path is None:
        return
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    fresh.write_text(text)
    fresh.replace(path)
