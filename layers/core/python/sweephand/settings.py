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
    dag_machine: str = ""
    """The ARN of the machine that advances runs of several tasks."""
    backfill_machine: str = ""
    """The ARN of the machine that keeps backfills going."""
    live: str = ""
    """Where messages to WebSocket connections are sent."""
    artifacts: str = ""
    """The bucket of the files that attempts leave behind; without one, none are kept."""
    origin: str = ""
    """The address that the console is served from: browsers may listen from there only."""
    http_may_reach: str = ""
    """Networks and hosts that `http` tasks may reach besides public addresses, with commas between them."""

    secret_arns: str = ""
    """Patterns of the ARNs of secrets and parameters that tasks may refer to, with commas between them."""
    batch_seconds: int = 0
    """How long deliveries wait to be handed out together, and then run together; 0: at once, each by itself."""
    targets: str = ""
    """What tasks may call on AWS: ARNs and patterns of them, with spaces between."""
    sdk_actions: str = ""
    """What tasks may call by boto3: names of actions as IAM has them, with spaces between."""
    keep_jobs: str = ""
    """Where it says something, jobs stay whose files are removed."""
    url: str = ""
    """Where agents find the API."""
    cluster: str = ""
    """The cluster that agents are launched in; without one, none are."""
    subnets: str = ""
    """The subnets that agents are launched in, with commas between them."""
    security_group: str = ""
    """What agents may reach, and who may reach them."""
    task_role: str = ""
    """The role of agents, and of the containers beside them."""
    execution_role: str = ""
    """The role with which ECS fetches their images."""
    agent_image: str = ""
    """The agent's image for arm64."""
    agent_image_x86: str = ""
    """The agent's image for x86_64; without one, containers are for arm64."""
    container_images: str = ""
    """The images that tasks may run, with spaces between: names, and patterns of them."""

    @classmethod
    def from_environ(cls, environ: Mapping[str, str]) -> Settings:
        """What the environment says; a variable of ours that means nothing is refused, since it is a misspelt one."""
        known = {variable_of(name): name for name in cls.__struct_fields__}
        unknown = sorted(name for name in environ if name.startswith(_PREFIX) and name not in known)
        if unknown:
            raise InvalidInput(f"{unknown[0]} means nothing: known are {', '.join(known)}.", unknown[0])
        return cls(**{name: _read(name, environ[at]) for at, name in known.items() if at in environ})

    def to_environ(self, *fields: str) -> dict[str, str]:
        """The variables that `from_environ` reads this from; only those of some fields, where they are named."""
        return {variable_of(name): str(getattr(self, name)) for name in fields or self.__struct_fields__}

    @property
    def wrong_place(self) -> str:
        """What is wrong with `http_may_reach`; empty where nothing is."""
        from sweephand.domain.addresses import Allowed  # late: most functions have no use for it

        try:
            Allowed.parse(self.reachable, variable_of("http_may_reach"))
        except InvalidInput as refused:
            return refused.message
        return ""

    @property
    def reachable(self) -> tuple[str, ...]:
        """What `http_may_reach` lists."""
        return tuple(filter(None, map(str.strip, self.http_may_reach.split(","))))


_DEFAULTS: Final = Settings()


def variable_of(field: str) -> str:
    """The variable of a setting."""
    return f"{_PREFIX}{field.upper()}"


def _read(name: str, text: str) -> Any:
    if not isinstance(getattr(_DEFAULTS, name), int):
        return text
    if not text.isascii() or not text.isdigit():
        raise InvalidInput(f"{variable_of(name)} must be a whole number, and is '{text}'.", variable_of(name))
    return int(text)
