"""`container`: a program in an image of its own, by docker or podman, whichever this machine has.

It gets one folder of the attempt's, and nothing else of this machine: no other mount, no rights, no socket. Where there
is neither, a step is refused with the reason, unless the place was told to run its command as a process of its own. A
place may list the images; without a list, any of them may run: whoever edits jobs here runs programs as they like.
"""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
from collections.abc import Mapping
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final, Protocol

from sweephand.calls import MOUNTED, Call, Files, Outcome, container_variables
from sweephand.domain.images import Permitted
from sweephand.domain.kinds import Offer
from sweephand.domain.retry import Failure, FailureClass
from sweephand.domain.templates import as_text
from sweephand.errors import InvalidInput
from sweephand.operators.operator import Attempt, Operator
from sweephand.operators.program import inherited, own_variables, run

__all__ = ["AsProcess", "ByEngine", "Containing", "Nowhere", "containers_here", "leave_secrets", "words_of"]

logger: Final = logging.getLogger("sweephand.operators")

ENGINES: Final = ("docker", "podman")
ANY: Final = Permitted()
AS_PROCESSES: Final = "--containers-as-processes"
_ANSWERS_WITHIN_S: Final = 10.0
_REMOVED_WITHIN_S: Final = 30.0
_ENGINE_FAILED: Final = 125
"""The exit code of docker and podman where the container was never begun."""
_NEVER: Final = ("not found", "manifest unknown", "access denied", "invalid reference", "no such image", "unauthorized")
_FOR_EVERYBODY: Final = 0o777


class Containing(Operator, Protocol):
    """Runs containers, and says of a step that is saved whether it could."""

    @property
    def offer(self) -> Offer: ...


def containers_here(
    environ: Mapping[str, str] = os.environ, *, as_processes: bool = False, images: Permitted = ANY
) -> Containing:
    """What runs containers on this machine, and of which images."""
    base = inherited(environ)
    if as_processes:
        return AsProcess(base, images)
    found = next((path for engine in ENGINES if (path := shutil.which(engine, path=environ.get("PATH")))), None)
    if found is None:
        return Nowhere("there is neither docker nor podman on this machine")
    told = [found, "version"]
    try:
        asked = subprocess.run(told, capture_output=True, timeout=_ANSWERS_WITHIN_S, env=dict(environ), check=False)
    except (OSError, subprocess.TimeoutExpired):
        return Nowhere(f"{Path(found).name} does not answer")
    if asked.returncode:
        return Nowhere(f"{Path(found).name} is installed, and its engine does not answer")
    return ByEngine(found, environ, images)


class Nowhere:
    """Where no container can run: says why."""

    def __init__(self, why: str) -> None:
        self._message = f"No container can run here: {why}. Start with {AS_PROCESSES} to run its command as a process."

    @property
    def offer(self) -> Offer:
        return Offer(self._refuse)

    def execute(self, attempt: Attempt) -> Outcome:
        raise InvalidInput(self._message, attempt.call.task.kind)

    def _refuse(self, _value: Mapping[str, Any], path: str) -> Mapping[str, Any]:
        raise InvalidInput(self._message, path)


class AsProcess:
    """Runs what a container would run, as a process of this machine: of the image, only the name is looked at."""

    def __init__(self, base: Mapping[str, str], images: Permitted = ANY) -> None:
        self._base = base
        self._images = images

    @property
    def offer(self) -> Offer:
        return Offer(self._read)

    def execute(self, attempt: Attempt) -> Outcome:
        self._images.check(attempt.call.task.spec["image"], "image")
        words = [*words_of(attempt, "entrypoint"), *words_of(attempt, "command")]
        if not words:
            raise InvalidInput(_WITHOUT_COMMAND, "command")
        image = attempt.call.task.spec["image"]
        attempt.log(f"The command runs as a process of this machine, and not in the image {image}: {AS_PROCESSES}.")
        files = attempt.place.files
        leave_secrets(attempt.call, files)
        own = {"HOME": str(files.work), **self._base, "TMPDIR": str(files.tmp), **own_variables(attempt)}
        return run(attempt, words, env=own | container_variables(attempt.call, files), cwd=files.work)

    def _read(self, value: Mapping[str, Any], path: str) -> Mapping[str, Any]:
        if not value.get("command") and not value.get("entrypoint"):
            raise InvalidInput(_WITHOUT_COMMAND, f"{path}.command")
        return _read(self._images, value, path)


class ByEngine:
    """Runs containers by the command line of docker or podman, which is the same as far as it is used here."""

    def __init__(self, program: str, environ: Mapping[str, str], images: Permitted = ANY) -> None:
        self._program = program
        self._environ = dict(environ)
        self._images = images

    @property
    def offer(self) -> Offer:
        return Offer(partial(_read, self._images))

    def execute(self, attempt: Attempt) -> Outcome:
        # Again: the list may have become shorter since the job was saved.
        self._images.check(attempt.call.task.spec["image"], "image")
        files = attempt.place.files
        leave_secrets(attempt.call, files)
        # Its user is the image's own: whoever that is may write here, and nobody else gets to this folder.
        for folder in (files.root, files.artifacts, files.tmp):
            folder.chmod(_FOR_EVERYBODY)
        name = _container_name(attempt.call)
        try:
            return run(attempt, self._words(attempt, name), env=self._environ, cwd=attempt.place.work, ended=_ended)
        finally:
            self._remove(name)

    def _words(self, attempt: Attempt, name: str) -> list[str]:
        spec = attempt.call.task.spec
        env = own_variables(attempt) | container_variables(attempt.call, MOUNTED)
        entrypoint = words_of(attempt, "entrypoint")
        return [
            *(self._program, "run", "--rm", "--name", name, "--security-opt", "no-new-privileges"),
            *("--volume", f"{attempt.place.root}:{MOUNTED.root}"),
            *(word for one, value in env.items() for word in ("--env", f"{one}={value}")),
            *(("--cpus", f"{spec['cpu'] / 1024:g}") if spec.get("cpu") else ()),
            *(("--memory", f"{spec['memory']}m") if spec.get("memory") else ()),
            *(("--platform", f"linux/{_PLATFORMS[spec['architecture']]}") if spec.get("architecture") else ()),
            *(("--entrypoint", entrypoint[0]) if entrypoint else ()),
            spec["image"],
            *entrypoint[1:],
            *words_of(attempt, "command"),
        ]

    def _remove(self, name: str) -> None:
        """Whatever became of the client that started it, the container is gone afterwards."""
        told = [self._program, "rm", "--force", name]
        try:
            subprocess.run(told, capture_output=True, timeout=_REMOVED_WITHIN_S, env=self._environ, check=False)
        except (OSError, subprocess.TimeoutExpired):
            logger.warning("The container %s could not be removed.", name, exc_info=True)


_PLATFORMS: Final = {"arm64": "arm64", "x86_64": "amd64"}
_WITHOUT_COMMAND: Final = f"Nothing is known of the image with {AS_PROCESSES}: write the words of its command."


def leave_secrets(call: Call, files: Files) -> None:
    """A file for each secret, named as the task names it; the folder is gone with the attempt's own."""
    if not call.secrets.by_name:
        return
    files.secrets.mkdir(mode=0o755, exist_ok=True)
    for name, value in call.secrets.by_name.items():
        (files.secrets / name).write_text(value)


def words_of(attempt: Attempt, option: str) -> list[str]:
    """The words of an option, their templates resolved: they go to the program as they are, and through no shell."""
    return [as_text(word) for word in attempt.option(option, [])]


def _ended(attempt: Attempt, code: int | None, quoted: str) -> Outcome | None:
    """The engine's own failure, where it is that."""
    if code != _ENGINE_FAILED:
        return None
    image = attempt.call.task.spec["image"]
    if any(mark in quoted.lower() for mark in _NEVER):
        return Failure("ImagePull", f"The image {image} cannot be had: {quoted}", FailureClass.PERMANENT)
    return Failure("NotStarted", f"The container was not started: {quoted}")


def _read(images: Permitted, value: Mapping[str, Any], path: str) -> Mapping[str, Any]:
    images.check(str(value.get("image", "")), f"{path}.image")
    return value


def _container_name(call: Call) -> str:
    digest = blake2b(f"{call.run.key}/{call.task.id}".encode(), digest_size=10).hexdigest()
    return f"sweephand-{digest}-{call.run.epoch}"
