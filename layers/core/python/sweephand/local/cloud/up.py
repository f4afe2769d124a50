"""`sweephand up --engine moto`: the functions of a checkout, on an AWS account in memory."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator
from contextlib import closing, contextmanager, redirect_stdout
from functools import partial
from pathlib import Path
from typing import Final

import sweephand
from sweephand.errors import InvalidInput
from sweephand.local.cloud.containers import Containers
from sweephand.local.cloud.deployment import Deployment
from sweephand.local.cloud.front import Front
from sweephand.local.cloud.live import Told
from sweephand.local.cloud.running import Running
from sweephand.local.engine import Engine, Options
from sweephand.local.examples import load_examples
from sweephand.local.folder import ACTOR, admin_token, open_folder
from sweephand.local.sockets import Sockets
from sweephand.settings import Settings

logger: Final = logging.getLogger("sweephand.local")

PEOPLE: Final = "https://people.invalid"
"""Nobody issues tokens to people here."""


@contextmanager
def on_moto(options: Options) -> Iterator[Engine]:
    """A deployment that lasts as long as the process."""
    folder = open_folder(options.data, database=False)
    containers = Containers()
    deployment = Deployment(
        checkout(),
        tmp=folder.work,
        clock=options.clock,
        dice=options.dice,
        settings=Settings(
            issuer=PEOPLE,
            http_may_reach=",".join(options.http_may_reach),
            targets=" ".join(map(str, options.targets.patterns)),
            sdk_actions=" ".join(options.targets.actions),
            url=options.address,
            origin=options.address,
            container_images=" ".join(options.images.patterns or "*") if options.containers_as_processes else "",
        ),
        containers=containers,
    )
    with closing(containers), redirect_stdout(_Logged()), deployment:
        with folder.locked():
            token = admin_token(folder, deployment.world)
        if options.examples:
            load_examples(deployment.world, actor=ACTOR)
        yield Engine(
            Front(deployment),
            folder,
            token,
            Running(deployment, width=options.workers),
            Sockets(partial(Told, deployment), clock=options.clock, dice=options.dice),
            note="It is an AWS account in memory: what is stored is gone when it stops.",
        )


def checkout() -> Path:
    """Where the functions are: they are no part of the installed package."""
    root = Path(sweephand.__file__).resolve().parents[4]
    if not all((root / folder).is_dir() for folder in ("functions", "statemachines")):
        raise InvalidInput("The engine moto runs the Lambda functions of a checkout: start it from one.", "engine")
    return root


class _Logged(io.TextIOBase):
    """What functions print, such as their metrics, goes to their log."""

    def write(self, text: str) -> int:
        if line := text.rstrip("\n"):
            logger.info("%s", line)
        return len(text)
