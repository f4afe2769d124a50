"""The environment of a deployed function: declared once, read once; `infra/` writes it with `to_environ`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from sweephand.errors import InvalidInput

_PREFIX: Final = "SWEEPHAND_"


class Settings(Struct, frozen=True):
    """Each in the variable of its name: `name` is in SWEEPHAND_NAME."""

    name: str = "sweephand"
    """What the deployment's resources are called; several may share an account."""
    issuer: str = ""
    """Who issues the tokens of people: the address of the user pool."""
    audience: str = ""
    """The app client of the user pool for which they are issued."""
    keep_runs_days: int = 35
    """How long ended runs stay in the tables."""
    lookahead_minutes: int = 14
    """How far ahead runs are planned; a message can be delayed by 15 minutes, and a tick may be late."""
    shards: int = 8
    """How many shards the due index has at least."""
    machine: str = ""
    """The ARN of the machine that waits for long tasks."""
    live: str = ""
    """Where messages to WebSocket connections are sent."""
    origin: str = ""
    """The address that the console is served from: browsers may listen from there only."""

    @classmethod
    def from_environ(cls, environ: Mapping[str, str]) -> Settings:
        """What the environment says; a variable of ours that means nothing is refused, since it is a misspelt one."""
        known = {_variable(name): name for name in cls.__struct_fields__}
        unknown = sorted(name for name in environ if name.startswith(_PREFIX) and name not in known)
        if unknown:
            raise InvalidInput(f"{unknown[0]} means nothing: known are {', '.join(known)}.", unknown[0])
        return cls(**{name: _read(name, environ[at]) for at, name in known.items() if at in environ})

    def to_environ(self) -> dict[str, str]:
        """The variables that `from_environ` reads this from."""
        return {_variable(name): str(getattr(self, name)) for name in self.__struct_fields__}


_DEFAULTS: Final = Settings()


def _variable(field: str) -> str:
    return f"{_PREFIX}{field.upper()}"


def _read(name: str, text: str) -> Any:
    if not isinstance(getattr(_DEFAULTS, name), int):
        return text
    if not text.isascii() or not text.isdigit():
        raise InvalidInput(f"{_variable(name)} must be a whole number, and is '{text}'.", _variable(name))
    return int(text)
