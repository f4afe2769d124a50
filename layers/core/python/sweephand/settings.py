"""The environment of a deployed function: declared once, read once; `infra/` writes it with `to_environ`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Final

from sweephand.errors import InvalidInput

_PREFIX: Final = "SWEEPHAND_"


@dataclass(frozen=True, slots=True)
class Settings:
    """Texts, each in the variable of its name: `name` is in SWEEPHAND_NAME."""

    name: str = "sweephand"
    """What the deployment's resources are called; several may share an account."""
    issuer: str = ""
    """Who issues the tokens of people: the address of the user pool."""
    audience: str = ""
    """The app client of the user pool for which they are issued."""

    @classmethod
    def from_environ(cls, environ: Mapping[str, str]) -> Settings:
        """What the environment says; a variable of ours that means nothing is refused, since it is a misspelt one."""
        known = {_variable(field.name): field.name for field in fields(cls)}
        unknown = sorted(name for name in environ if name.startswith(_PREFIX) and name not in known)
        if unknown:
            raise InvalidInput(f"{unknown[0]} means nothing: known are {', '.join(known)}.", unknown[0])
        return cls(**{field: environ[name] for name, field in known.items() if name in environ})

    def to_environ(self) -> dict[str, str]:
        """The variables that `from_environ` reads this from."""
        return {_variable(field.name): getattr(self, field.name) for field in fields(self)}


def _variable(field: str) -> str:
    return f"{_PREFIX}{field.upper()}"
