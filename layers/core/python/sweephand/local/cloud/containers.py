"""The processes of a task: the agent as it is, and what the container beside it would run, without its image.

A server on this machine gives them what ECS and AWS would: the metadata of their task, and the calls that an agent
makes, to write logs, to keep files and to read code.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import IO, Any, Final
from urllib.parse import unquote, urlsplit

import boto3
import msgspec
from botocore.config import Config
from botocore.exceptions import ClientError

from sweephand.local.cloud.account import AGENT as BY
from sweephand.local.cloud.account import CONFIG, ENVIRONMENT
from sweephand.local.cloud.cluster import Ended, Started, Task
from sweephand.local.loop import logger
from sweephand.topology import AGENT, AGENT_CONTAINER, TASK_CONTAINER

HOST: Final = "127.0.0.1"
_MOUNTED: Final = "/sweephand"
_LOOK_S: Final = 0.05
_CALLS: Final = {
    "Logs_20140328.CreateLogStream": "create_log_stream",
    "Logs_20140328.PutLogEvents": "put_log_events",
}


class Containers:
    """Starts tasks as processes. `beat` is how often agents say that they are alive, where a test is in a hurry."""

    def __init__(self, environ: Mapping[str, str] = os.environ, *, beat: str = "") -> None:
        self._environ = {"PATH": environ.get("PATH", os.defpath), "LANG": "C.UTF-8"}
        self._beat = {"SWEEPHAND_BEAT": beat} if beat else {}
        self._tasks: dict[str, _Processes] = {}
        self._server = ThreadingHTTPServer((HOST, 0), _serving(self._tasks))
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, name="sweephand-ecs", daemon=True).start()

    def start(self, task: Task, ended: Callable[[Ended], None]) -> Started:
        address = f"http://{HOST}:{self._server.server_address[1]}"
        folder = Path(tempfile.mkdtemp(prefix="swh-"))
        env = {
            **self._environ,
            **ENVIRONMENT,
            "AWS_ENDPOINT_URL": address,
            "ECS_CONTAINER_METADATA_URI_V4": f"{address}/v4/{task.id}",
            **self._beat,
        }
        processes = self._tasks[task.id] = _Processes(task, folder, env, ended)
        processes.start()
        return processes

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Processes:
    """One task. The agent is its essential container: everything ends with it."""

    def __init__(self, task: Task, folder: Path, env: Mapping[str, str], ended: Callable[[Ended], None]) -> None:
        self._task = task
        self._folder = folder
        self._env = env
        self._ended = ended
        self._lock = threading.Lock()
        self._stopping = False
        self._agent: subprocess.Popen[bytes] | None = None
        self._beside: subprocess.Popen[bytes] | None = None
        self._code: int | None = None
        self._has_ended = False

    def start(self) -> None:
        told = self._task.environment(AGENT_CONTAINER)
        own = {"SWEEPHAND_WORK": str(self._folder / "work"), "SWEEPHAND_SOCKET": str(self._folder / "sock")}
        if TASK_CONTAINER in self._task.containers:
            own["SWEEPHAND_SHARED"] = str(self._folder / "shared")
        with (self._folder / "agent.log").open("wb") as log:
            self._agent = subprocess.Popen(
                [sys.executable, "-m", "sweephand", "agent"],
                env={**self._env, "HOME": str(self._folder), **told, **own},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                start_new_session=True,
            )
        threading.Thread(target=self._attend, name="sweephand-task", daemon=True).start()

    @property
    def agent_pid(self) -> int:
        assert self._agent is not None
        return self._agent.pid

    @property
    def metadata(self) -> dict[str, Any]:
        """As version 4 of the endpoint tells it."""
        with self._lock:
            beside: dict[str, Any] = {"Name": TASK_CONTAINER, "KnownStatus": "PENDING"}
            if self._beside is not None:
                beside["KnownStatus"] = "RUNNING"
            if self._has_ended:
                beside["KnownStatus"] = "STOPPED"
                if self._code is not None:
                    beside["ExitCode"] = self._code
            desired = "STOPPED" if self._stopping else "RUNNING"
        agent = {"Name": AGENT_CONTAINER, "KnownStatus": "RUNNING"}
        return {"TaskARN": self._task.arn, "DesiredStatus": desired, "Containers": [agent, beside]}

    def stop(self) -> None:
        """First what depends on the agent, then the agent."""
        with self._lock:
            self._stopping = True
            beside = self._beside if not self._has_ended else None
        _signal(beside or self._agent, signal.SIGTERM)

    def kill(self) -> None:
        for one in (self._beside, self._agent):
            _signal(one, signal.SIGKILL)

    def _attend(self) -> None:
        agent = self._agent
        assert agent is not None
        ready, looking = self._folder / "shared" / "ready", threading.Event()
        has_beside = TASK_CONTAINER in self._task.containers
        while agent.poll() is None:
            if has_beside and self._beside is None and not self._has_ended and ready.exists():
                self._begin_beside()
            looking.wait(_LOOK_S)
        _signal(self._beside, signal.SIGKILL)
        if self._beside is not None:
            self._beside.wait()
        codes: dict[str, int | None] = {AGENT_CONTAINER: _as_engines_say(agent.returncode)}
        if has_beside:
            codes[TASK_CONTAINER] = self._code
        logger.info("Agent of %s: %s", self._task.id, (self._folder / "agent.log").read_text(errors="replace"))
        shutil.rmtree(self._folder, ignore_errors=True)
        self._ended(Ended(codes))

    def _begin_beside(self) -> None:
        shared = str(self._folder / "shared")
        told = {
            name: value.replace(_MOUNTED, shared) if name.startswith("SWEEPHAND_") else value
            for name, value in self._task.environment(TASK_CONTAINER).items()
        }
        try:
            process = subprocess.Popen(
                self._task.words(TASK_CONTAINER),
                env={"PATH": self._env["PATH"], "HOME": shared, **told},
                cwd=Path(shared) / "work",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        except (OSError, ValueError, IndexError):
            with self._lock:
                self._has_ended = True
            return
        with self._lock:
            self._beside = process
        threading.Thread(target=self._follow, args=(process,), name="sweephand-beside", daemon=True).start()

    def _follow(self, process: subprocess.Popen[bytes]) -> None:
        """Bring its lines to the router, and notice its end."""
        assert process.stdout is not None
        assert process.stderr is not None
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as router:
            with suppress(OSError):
                router.connect(str(self._folder / "sock"))
            lock = threading.Lock()
            pipes = (("stdout", process.stdout), ("stderr", process.stderr))
            threads = [threading.Thread(target=_bring, args=(router, lock, *one), daemon=True) for one in pipes]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            code = process.wait()
        with self._lock:
            self._code, self._has_ended = _as_engines_say(code), True
            stopping = self._stopping
        if stopping:
            _signal(self._agent, signal.SIGTERM)


def _bring(router: socket.socket, lock: threading.Lock, source: str, pipe: IO[bytes]) -> None:
    for line in pipe:
        record = {"container_name": TASK_CONTAINER, "source": source, "log": line.decode(errors="replace").rstrip("\n")}
        with lock, suppress(OSError):
            router.sendall(msgspec.msgpack.encode(["task-firelens", 0, record, {}]))


def _signal(process: subprocess.Popen[bytes] | None, number: signal.Signals) -> None:
    if process is not None and process.poll() is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)


def _as_engines_say(code: int) -> int:
    return 128 - code if code < 0 else code


def _object_at(path: str) -> dict[str, str]:
    _, bucket, key = unquote(urlsplit(path).path).split("/", 2)
    return {"Bucket": bucket, "Key": key}


def _serving(tasks: Mapping[str, _Processes]) -> type[BaseHTTPRequestHandler]:
    config = CONFIG.merge(Config(user_agent_extra=f"{BY}{AGENT}"))

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if "/code/" in self.path:
                self._read()
                return
            _, version, task, what = [*self.path.split("/"), "", "", ""][:4]
            if version != "v4" or what != "task" or task not in tasks:
                self._answer(404, {})
                return
            self._answer(200, tasks[task].metadata)

        def do_POST(self) -> None:
            call = _CALLS.get(self.headers.get("X-Amz-Target", ""))
            asked = json.loads(self._body() or b"{}")
            if call is None:
                self._answer(400, {"__type": "UnknownOperationException"})
                return
            self._pass_on(lambda: getattr(boto3.client("logs", config=config), call)(**asked))

        def do_PUT(self) -> None:
            where, body = _object_at(self.path), self._body()
            self._pass_on(lambda: boto3.client("s3", config=config).put_object(**where, Body=body))

        def _read(self) -> None:
            try:
                found = boto3.client("s3", config=config).get_object(**_object_at(self.path))
            except ClientError as error:
                self._answer(404, {"__type": error.response["Error"]["Code"]})
                return
            self._send(200, "application/octet-stream", found["Body"].read())

        def _body(self) -> bytes:
            return self.rfile.read(int(self.headers.get("Content-Length", "0")))

        def _pass_on(self, call: Callable[[], Any]) -> None:
            try:
                call()
            except ClientError as error:
                self._answer(400, {"__type": error.response["Error"]["Code"]})
                return
            self._answer(200, {})

        def _answer(self, status: int, document: Mapping[str, Any]) -> None:
            self._send(status, "application/x-amz-json-1.1", json.dumps(document).encode())

        def _send(self, status: int, kind: str, content: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:
            """What is asked here is nobody's news."""

    return Handler
