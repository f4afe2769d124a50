"""What the functions of this process are made from; on Lambda, what is there. It knows nothing of AWS, which is slow to
import: a function that may need none of it begins without."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache

from sweephand.clock import SystemClock, SystemDice
from sweephand.ports import Clock, Dice
from sweephand.settings import Settings
from sweephand.topology import Names

__all__ = ["begin", "caller", "clock", "dice", "function", "names", "region", "settings"]


class _Surroundings:
    environ: Mapping[str, str] = os.environ
    clock: Clock = SystemClock()
    dice: Dice = SystemDice()


def begin(environ: Mapping[str, str], *, clock: Clock | None = None, dice: Dice | None = None) -> None:
    """Forget what was worked out: the functions that are loaded from now on live in these surroundings."""
    _Surroundings.environ = environ
    _Surroundings.clock = clock or SystemClock()
    _Surroundings.dice = dice or SystemDice()
    settings.cache_clear()


@cache
def settings() -> Settings:
    """The function's environment; a wrong one fails at the cold start, not in the middle of a run."""
    return Settings.from_environ(_Surroundings.environ)


def clock() -> Clock:
    return _Surroundings.clock


def dice() -> Dice:
    return _Surroundings.dice


def names() -> Names:
    """What the deployment's resources are called."""
    return Names(settings().name)


def function() -> str:
    """The verb of the function that is loaded."""
    return _Surroundings.environ.get("AWS_LAMBDA_FUNCTION_NAME", "elsewhere").removeprefix(f"{settings().name}-")


def region() -> str:
    """Where it lives."""
    return _Surroundings.environ.get("AWS_REGION") or os.environ.get("AWS_REGION", "")


def caller() -> str:
    """How its calls name it, so that CloudTrail shows which function made them."""
    return f"sweephand/{function()}"
