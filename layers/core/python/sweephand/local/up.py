"""`sweephand up`: the scheduler and its API in one process, until it is told to stop."""

from __future__ import annotations

import errno
import logging
import os
import shlex
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from socket import socket
from types import FrameType
from typing import Final, TextIO

from sweephand.api.app import PUBLIC, Api
from sweephand.api.authorize import Gate
from sweephand.api.downloads import Downloads
from sweephand.api.filing import ApiFiling
from sweephand.api.sessions import Issuer
from sweephand.clock import SystemClock, SystemDice
from sweephand.domain.addresses import Allowed
from sweephand.domain.bounds import parse_bounds
from sweephand.domain.images import Permitted
from sweephand.domain.targets import AWS_KINDS, Remedy, Targets
from sweephand.embedded import open_stores
from sweephand.engine.look import KINDS as LOOKS
from sweephand.engine.match import match
from sweephand.errors import InvalidInput, SweephandError
from sweephand.local.engine import Engine, Opening, Options
from sweephand.local.examples import load_examples
from sweephand.local.folder import ACTOR, admin_token, issuer_key, open_folder, secrets_key
from sweephand.local.gateway import Gateway
from sweephand.local.job_folder import JobFolder, Scanning
from sweephand.local.limits import with_room_for_files
from sweephand.local.live import News
from sweephand.local.runtime import Runtime
from sweephand.local.server import HOST, STANDARD, App, Server, listen
from sweephand.local.site import Site
from sweephand.local.sockets import Sockets
from sweephand.operators import Logging, Operator, Operators, Unpacked, containers_here
from sweephand.ports import Clock, World

logger: Final = logging.getLogger("sweephand.local")

DATA: Final = Path(".sweephand")
PORT: Final = 8080
WORKERS: Final = 8
INTERRUPTED: Final = 130
EXTERNAL: Final = "external"
"""What workers elsewhere run."""
REMEDY: Final = Remedy("Start with --aws-target '{}' to allow it.", "Start with --aws-action '{}' to allow it.")
IMAGE_REMEDY: Final = "Start with --container-image '{}' to allow it."
AS_PROCESSES_NOTE: Final = "Containers run as processes of this machine: their images are not used."
ISSUER: Final = "urn:sweephand:local"
"""The same on every port: processes that share a folder believe each other's sessions."""


def up(
    data: Path = DATA,
    port: int = PORT,
    examples: bool = True,
    workers: int = WORKERS,
    engine: str = "sqlite",
    verbose: bool = False,
    http_may_reach: Sequence[str] = (),
    aws_targets: Sequence[str] = (),
    aws_actions: Sequence[str] = (),
    task_limits: Sequence[str] = (),
    containers_as_processes: bool = False,
    jobs: Path | None = None,
    keep_jobs: bool = False,
    container_images: Sequence[str] = (),
) -> int:
    """Serve until Ctrl-C or SIGTERM; the exit code. Starting again goes on where it ended, or where it was killed."""
    logging.basicConfig(
        level=logging.INFO if verbose else logging.WARNING, format="%(asctime)s %(levelname)s %(message)s"
    )
    try:
        opening = _opening(engine, jobs)
        Allowed.parse(http_may_reach, "http-may-reach")
        targets = Targets.of(aws_targets, aws_actions, remedy=REMEDY)
        bounds = parse_bounds(task_limits, "task-limit")
        images = Permitted.of(container_images, option="container-image", remedy=IMAGE_REMEDY)
        listening = listen(port)
    except InvalidInput as error:
        return _failed(error.message)
    except OSError as error:
        return _failed(_why_not(port, error))
    options = Options(
        data,
        SystemClock(),
        SystemDice(),
        workers,
        examples,
        tuple(http_may_reach),
        targets,
        bounds,
        f"http://{HOST}:{listening.getsockname()[1]}",
        containers_as_processes,
        jobs,
        keep_jobs,
        images if container_images else Permitted(),
    )
    with listening, _Stopping() as stopping:
        try:
            _run(listening, stopping, opening, options, verbose=verbose)
        except SweephandError as error:
            return _failed(error.message)
    return 0


class _Stopping:
    """How it ends: the first signal asks for it, and a second Ctrl-C does not wait."""

    _SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def __init__(self) -> None:
        self._asked = False
        self._server: Server | None = None
        self._restored = ExitStack()

    def __enter__(self) -> _Stopping:
        for number in self._SIGNALS:
            if number == signal.SIGHUP and signal.getsignal(number) is signal.SIG_IGN:
                continue  # nohup: it is to survive its terminal
            self._restored.callback(signal.signal, number, signal.signal(number, self._hear))
        return self

    def __exit__(self, *_: object) -> None:
        self._restored.close()

    def ends(self, server: Server) -> None:
        """This is to stop; at once, where a signal came before it was there."""
        self._server = server
        server.should_exit = self._asked

    def _hear(self, number: int, _frame: FrameType | None) -> None:
        if self._asked and number == signal.SIGINT:
            os._exit(INTERRUPTED)  # what was under way is run again, when its leases end
        self._asked = True
        if self._server is not None:
            self._server.should_exit = True


def _run(listening: socket, stopping: _Stopping, opening: Opening, options: Options, *, verbose: bool) -> None:
    out = sys.stdout
    with opening(options) as engine:
        gateway = Gateway(engine.api, public=PUBLIC, clock=options.clock, dice=options.dice)
        port: int = listening.getsockname()[1]
        app = App(
            gateway,
            options.dice,
            with_room_for_files(STANDARD),
            site=Site(),
            sockets=engine.sockets,
            match=engine.match,
        )
        server = Server(app, ready=lambda: _greet(out, port, engine), verbose=verbose)
        stopping.ends(server)
        with engine.loops:
            server.run([listening])


@contextmanager
def _on_sqlite(options: Options) -> Iterator[Engine]:
    folder, clock = open_folder(options.data), options.clock
    with closing(open_stores(folder.database, clock=clock, secrets_key=partial(secrets_key, folder))) as stores:
        targets = options.targets if find_spec("boto3") else None
        operators = Operators(
            folder.work,
            http_may_reach=options.http_may_reach,
            logging=Logging(stores.logs.open),
            keep=stores.artifacts.keep,
            keep_output=stores.artifacts.keep_output,
            clock=clock,
            also=_aws(targets, clock),
            bounds=options.bounds,
            code=Unpacked(folder.unpacked, stores.packs.read),
            containers=containers_here(as_processes=options.containers_as_processes, images=options.images),
        )
        runtime = Runtime(stores, target=operators, clock=clock, dice=options.dice, workers=options.workers)
        with folder.locked():
            token, key = admin_token(folder, runtime.world), issuer_key(folder)
            if options.examples:
                stores.database.together(partial(load_examples, runtime.world, actor=ACTOR))
        if options.jobs is not None:
            scans = ApiFiling(runtime.world, kinds=_kinds(operators), operators=operators.steps, targets=targets)
            scanned = JobFolder(options.jobs)
            runtime.also("scan", Scanning(runtime.world, scanned, scans, removes=not options.keep_jobs).step)
        note = AS_PROCESSES_NOTE if options.containers_as_processes else ""
        issuer = Issuer(key.encode(), url=ISSUER, clock=clock)
        gate = Gate(runtime.world, [issuer.verifier()])
        sockets = Sockets(partial(News, gate, stores.feed, clock), clock=clock, dice=options.dice)
        api = _api(runtime.world, issuer, operators, targets, Downloads(key.encode()))
        yield Engine(api, folder, token, runtime, sockets, partial(match, runtime.world), note)


def _opening(engine: str, jobs: Path | None = None) -> Opening:
    """How an engine is opened; what only one of them needs is not imported for another."""
    if engine == "sqlite":
        return _on_sqlite
    if jobs is not None:
        raise InvalidInput("The engine moto scans the bucket that the deployment has: --jobs is for sqlite.", "jobs")
    if not all(map(find_spec, ("boto3", "moto"))):
        raise InvalidInput("The engine moto is not installed: `pip install 'sweephand[moto]'` does it.", "engine")
    from sweephand.local.cloud.up import on_moto

    return on_moto


def _aws(targets: Targets | None, clock: Clock) -> dict[str, Operator]:
    """What calls AWS with the credentials of whoever started this; boto3 is imported with the first call."""
    if targets is None:
        return {}
    from sweephand.operators.aws import aws_operators

    return aws_operators(targets, clock=clock)


def _api(world: World, issuer: Issuer, operators: Operators, targets: Targets | None, downloads: Downloads) -> Api:
    kinds, steps = _kinds(operators), operators.steps
    return Api(world, issuer=issuer, kinds=kinds, operators=steps, targets=targets, downloads=downloads)


def _kinds(operators: Operators) -> frozenset[str]:
    return operators.kinds - AWS_KINDS | LOOKS | {EXTERNAL}


def _greet(out: TextIO, port: int, engine: Engine) -> None:
    url, path, here = f"http://{HOST}:{port}", engine.folder.token, Path.cwd()
    file = str(path.relative_to(here) if path.is_relative_to(here) else path)
    out.write(
        f"Sweephand is up at {url}\n"
        f"The admin's token is in {file}: {engine.token}\n"
        f"Next: export SWEEPHAND_URL={url} SWEEPHAND_TOKEN=$(cat {shlex.quote(file)}), then `sweephand list`.\n"
    )
    if engine.note:
        out.write(f"{engine.note}\n")
    out.flush()


def _why_not(port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"Port {port} is taken: stop what listens there, or choose another with --port."
    return f"Port {port} cannot be used: {error.strerror}."


def _failed(why: str) -> int:
    sys.stderr.write(f"{why}\n")
    return 1
