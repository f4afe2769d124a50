"""The jobs that a new data folder begins with: small, harmless, and each shows something."""

from __future__ import annotations

from typing import Any, Final

from sweephand.domain.access import DEFAULT
from sweephand.domain.ids import JobKey, JobName
from sweephand.engine.pause import pause
from sweephand.engine.put import put
from sweephand.ports import World

EXAMPLES: Final[tuple[dict[str, Any], ...]] = (
    {
        "name": "hello",
        "description": "Says hello every minute. Minutes that were missed are not made up for.",
        "schedule": "* * * * *",
        "catchup": "none",
        "timeout": "10s",
        "tags": ["example"],
        "run": {"command": ["echo", "Hello from Sweephand"]},
    },
    {
        "name": "after-hello",
        "description": "Runs when hello has succeeded.",
        "schedule": {"after": ["hello"]},
        "timeout": "10s",
        "tags": ["example"],
        "run": {"command": ["echo", "hello has succeeded"]},
    },
    {
        "name": "mean",
        "description": "Calls a Python function every five minutes; its result is the run's output.",
        "schedule": {"every": "5m"},
        "catchup": "none",
        "timeout": "1m",
        "tags": ["example"],
        "run": {"python": "statistics:mean", "args": [[1, 2, 3, 4]]},
    },
    {
        "name": "nightly-report",
        "description": "At 02:30 in Berlin, also when the clocks change, with retries. It is paused: resume it.",
        "schedule": {
            "cron": "30 2 * * *",
            "timezone": "Europe/Berlin",
            "dst": {"gap": "shift", "fold": "first"},
        },
        "catchup": {"policy": "latest", "window": "1d"},
        "overlap": "skip",
        "retry": {"attempts": 4, "backoff": "exponential", "delay": "10s", "maxDelay": "10m"},
        "timeout": "5m",
        "params": {"region": "eu"},
        "tags": ["example", "report"],
        "run": {"command": ["echo", "Reporting on ${params.region}"]},
    },
)
PAUSED: Final = ("nightly-report",)


def load_examples(world: World, *, actor: str) -> bool:
    """Put the examples where there never was a job; False where there was one.

    Repeating it changes nothing, and what was deleted stays so.
    """
    if world.jobs.namespaces():
        return False
    for definition in EXAMPLES:
        put(world, DEFAULT, definition, actor=actor, expected=None, note="an example")
    for name in PAUSED:
        pause(world, JobKey(DEFAULT, JobName(name)), actor=actor, note="an example")
    return True
