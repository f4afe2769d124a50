"""Cold starts: what a deployed function is made of, worked out once."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from functools import cache
from typing import Any, Final
from urllib.request import urlopen

from sweephand import aws
from sweephand.clock import SystemClock, SystemDice
from sweephand.errors import Defect
from sweephand.ports import Call, Outcome, World
from sweephand.settings import Settings
from sweephand.topology import Names

__all__ = ["deployed", "published_keys", "settings"]

_KEYS_WITHIN_S: Final = 3


class _NoTarget:
    """What runs tasks in a function that runs none."""

    def execute(self, call: Call) -> Outcome:
        raise Defect(f"This function runs no tasks, and was asked to run {call.run.key}.")


@cache
def settings() -> Settings:
    """The function's environment; a wrong one fails at the cold start, not in the middle of a run."""
    return Settings.from_environ(os.environ)


@cache
def deployed() -> World:
    """The world of this deployment."""
    clock, dice = SystemClock(), SystemDice()
    stores = aws.connect(Names(settings().name), *aws.clients(), clock=clock)
    return World.over(stores, clock=clock, dice=dice, target=_NoTarget(), pace=aws.PACE, owner=dice.nonce())


def published_keys() -> Mapping[str, Any]:
    """The keys that the issuer of people's tokens publishes."""
    address = f"{settings().issuer}/.well-known/jwks.json"
    if not address.startswith("https://"):
        raise Defect(f"The issuer's address must begin with https: {address}.")
    with urlopen(address, timeout=_KEYS_WITHIN_S) as answer:
        keys: Mapping[str, Any] = json.load(answer)
    return keys
