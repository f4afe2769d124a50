"""`sweephand up` as a user has it: a process, its lines, its folder, its end."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from sweephand.clock import SystemClock
from sweephand.embedded import open_stores
from sweephand.engine.issue import OWN, TOKEN
from tests.local.waiting import until

ROOT = Path(__file__).resolve().parents[2]
STARTS_WITHIN_S = 30
ENDS_WITHIN_S = 40


class Up:
    """A running process."""

    def __init__(self, process: subprocess.Popen[str], data: Path) -> None:
        self.process = process
        self.data = data
        self.lines: list[str] = []
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()
        until(lambda: len(self.lines) >= 3 or process.poll() is not None, within_s=STARTS_WITHIN_S, what="its lines")
        assert process.poll() is None, self.errors()
        self.url = self.lines[0].removeprefix("Sweephand is up at ")
        self.token = (data / "admin.token").read_text().strip()
        self.client = httpx.Client(
            base_url=f"{self.url}/api/v1", headers={"authorization": f"Bearer {self.token}"}, timeout=30
        )

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))

    def errors(self) -> str:
        """What it complained about, once it has ended."""
        assert self.process.stderr is not None
        return self.process.stderr.read()

    def call(self, method: str, path: str, **options: Any) -> Any:
        answer = self.client.request(method, path, **options)
        assert answer.is_success, answer.text
        return answer.json() if answer.content else None

    def jobs(self) -> list[str]:
        return [job["name"] for job in self.call("GET", "/jobs")["items"]]

    def run(self, job: str, run_id: str) -> dict[str, Any]:
        found: dict[str, Any] = self.call("GET", f"/jobs/{job}/runs/{run_id}")
        return found

    def create(self, name: str, *command: str) -> None:
        self.call("POST", "/jobs", json={"name": name, "run": {"command": list(command)}, "timeout": "1m"})

    def trigger(self, job: str) -> str:
        run_id: str = self.call("POST", f"/jobs/{job}/trigger")["runId"]
        return run_id

    def await_state(self, job: str, run_id: str, state: str, within_s: float = 20) -> dict[str, Any]:
        until(lambda: self.run(job, run_id)["state"] == state, within_s=within_s, what=f"{job} is {state}")
        return self.run(job, run_id)

    def end(self, number: int = signal.SIGTERM) -> int:
        """Its exit code."""
        self.process.send_signal(number)
        return self.process.wait(ENDS_WITHIN_S)


def command(data: Path, *options: str) -> list[str]:
    return [sys.executable, "-m", "sweephand", "up", "--port", "0", "--data", str(data), *options]


@contextmanager
def launched(data: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    """A process that has just been started, and is gone at the end, whatever happens."""
    with subprocess.Popen(
        command(data, *options), cwd=data.parent, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def up(data: Path, *options: str) -> Iterator[Up]:
    """A process that answers; what is left of it in the end is told to stop."""
    with launched(data, *options) as process:
        started = Up(process, data)
        with started.client:
            yield started
        if process.poll() is None:
            assert started.end() == 0


def refused(data: Path, *options: str) -> str:
    """The one line that it says instead of starting."""
    process = subprocess.run(
        command(data, *options), cwd=data.parent, capture_output=True, text=True, timeout=STARTS_WITHIN_S, check=False
    )
    assert process.returncode == 1
    assert process.stdout == ""
    (line,) = process.stderr.splitlines()
    return line


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    with up(tmp_path_factory.mktemp("up") / "data") as process:
        yield process


def held_until(file: Path) -> list[str]:
    """A command that ends when a file is there."""
    return ["sh", "-c", f"while [ ! -e {file} ]; do sleep 0.05; done; echo let go"]


def test_it_says_where_it_is_and_where_the_token_is(running: Up) -> None:
    port = httpx.URL(running.url).port
    where, token, following = running.lines
    assert where == f"Sweephand is up at http://127.0.0.1:{port}"
    assert token == f"The admin's token is in data/admin.token: {running.token}"
    assert f"SWEEPHAND_URL=http://127.0.0.1:{port} SWEEPHAND_TOKEN=$(cat data/admin.token)" in following
    assert (running.data / "admin.token").stat().st_mode & 0o777 == 0o600
    health = httpx.get(f"{running.url}/api/v1/health")
    assert (health.status_code, health.json()) == (200, {"status": "ok"})


def test_every_route_needs_a_token(running: Up) -> None:
    document = running.call("GET", "/openapi.json")
    routes = [
        (method, path)
        for path, methods in document["paths"].items()
        for method in methods
        if path.removeprefix("/api") not in {"/v1/health", "/v1/jwks.json"}
    ]
    assert len(routes) > 40
    with httpx.Client(base_url=running.url) as stranger:
        for method, path in routes:
            inside = path.removeprefix("/api").replace("{", "").replace("}", "")
            for asked in (inside, f"{inside}/", inside.upper(), f"/{inside}"):
                for verb in (method, "options"):
                    answer = stranger.request(verb, f"/api{asked}")
                    assert answer.status_code == 401, (verb, asked)
                    assert answer.headers["content-type"] == "application/problem+json"
                    assert answer.headers["www-authenticate"].startswith("Bearer")
                    assert "access-control-allow-origin" not in answer.headers


def test_the_examples_are_there_and_run(running: Up) -> None:
    assert running.jobs() == ["after-hello", "hello", "mean", "nightly-report"]
    assert running.call("GET", "/jobs/nightly-report")["status"] == "paused"
    first = running.trigger("hello")
    running.await_state("hello", first, "succeeded")
    assert running.await_state("mean", running.trigger("mean"), "succeeded")["output"] == 2.5
    until(
        lambda: any(one["state"] == "succeeded" for one in running.call("GET", "/jobs/after-hello/runs")["items"]),
        within_s=20,
        what="the job after hello",
    )


def test_a_wrong_token_opens_nothing(running: Up) -> None:
    for token in ("", "Bearer", "Bearer nonsense", f"Basic {running.token}", f"Bearer {running.token}x"):
        answer = httpx.get(f"{running.url}/api/v1/jobs", headers={"authorization": token})
        assert answer.status_code == 401


def test_a_revoked_token_opens_nothing_soon(running: Up) -> None:
    token = running.call("POST", "/tokens", json={"name": "reader", "role": "viewer"})
    with httpx.Client(base_url=running.url, headers={"authorization": f"Bearer {token['token']}"}) as reader:
        assert reader.get("/api/v1/jobs").status_code == 200
        assert reader.post("/api/v1/jobs/hello/trigger").status_code == 403
        assert reader.get("/api/v1/jobs", headers={"x-namespace": "another"}).status_code == 403
        running.call("DELETE", f"/tokens/{token['id']}")
        until(lambda: reader.get("/api/v1/jobs").status_code == 401, within_s=10, what="a closed door")


def test_a_large_body_and_another_host_are_refused(running: Up) -> None:
    answer = running.client.post("/jobs", content=b"a" * 10_000_000)
    assert (answer.status_code, answer.json()["status"]) == (413, 413)
    answer = running.client.get("/health", headers={"host": "elsewhere.example"})
    assert (answer.status_code, answer.json()["status"]) == (403, 403)


def test_a_restart_goes_on_with_the_same_folder(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with up(data, "--no-examples") as first:
        assert first.jobs() == []
        first.create("mine", "echo", "mine")
        run_id = first.trigger("mine")
        first.await_state("mine", run_id, "succeeded")
        assert first.end() == 0
        assert first.errors() == ""
    with up(data) as second:
        assert second.token == first.token
        assert second.jobs() == ["mine"]
        assert second.run("mine", run_id)["state"] == "succeeded"
        assert second.end(signal.SIGINT) == 0


def test_stopping_lets_runs_finish(tmp_path: Path) -> None:
    data, file = tmp_path / "data", tmp_path / "file"
    with up(data, "--no-examples") as first:
        first.create("held", *held_until(file))
        run_id = first.trigger("held")
        first.await_state("held", run_id, "running")
        first.process.terminate()
        until(lambda: _is_closed(first.url), within_s=10, what="closed doors")
        file.touch()
        assert first.process.wait(ENDS_WITHIN_S) == 0
    with up(data) as second:
        run = second.run("held", run_id)
        assert (run["state"], run["attempt"]) == ("succeeded", 1)


def test_a_second_interrupt_does_not_wait(tmp_path: Path) -> None:
    data, file = tmp_path / "data", tmp_path / "file"
    with up(data, "--no-examples") as process:
        process.create("held", *held_until(file))
        process.await_state("held", process.trigger("held"), "running")
        process.process.send_signal(signal.SIGINT)
        until(lambda: _is_closed(process.url), within_s=10, what="closed doors")
        assert process.end(signal.SIGINT) == 130
    file.touch()


def test_killed_in_the_middle_of_a_run_the_next_process_runs_it_again(tmp_path: Path) -> None:
    data, file = tmp_path / "data", tmp_path / "file"
    with up(data, "--no-examples") as first:
        first.create("held", *held_until(file))
        run_id = first.trigger("held")
        first.await_state("held", run_id, "running")
        assert first.end(signal.SIGKILL) == -signal.SIGKILL
    file.touch()
    with up(data) as second:
        assert second.token == first.token
        run = second.await_state("held", run_id, "succeeded", within_s=60)
        assert run["attempt"] == 2


def test_two_processes_start_on_one_new_folder_and_share_it(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with launched(data) as one, launched(data) as other:
        first, second = Up(one, data), Up(other, data)
        with first.client, second.client:
            _assert_shared(first, second, data)
        assert (first.end(), second.end()) == (0, 0)
        assert (first.errors(), second.errors()) == ("", "")


def _assert_shared(first: Up, second: Up, data: Path) -> None:
    assert first.lines[1] == second.lines[1]
    assert first.jobs() == second.jobs() == ["after-hello", "hello", "mean", "nightly-report"]
    assert len(first.call("GET", "/jobs/hello/versions")["items"]) == 1
    with closing(open_stores(data / "sweephand.db", clock=SystemClock())) as stores:
        assert len(stores.shared.listed(OWN, TOKEN, limit=10)) == 1
    session = first.call("POST", "/session")["token"]
    heard = httpx.get(f"{second.url}/api/v1/jobs", headers={"authorization": f"Bearer {session}"})
    assert heard.status_code == 200
    first.create("mine", "echo", "mine")
    second.await_state("mine", second.trigger("mine"), "succeeded")


def test_a_taken_port_is_said_in_one_line(running: Up, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        line = refused(tmp_path / "data", "--port", str(port))
    assert line == f"Port {port} is taken: stop what listens there, or choose another with --port."
    assert not (tmp_path / "data").exists()


def test_a_token_that_others_can_read_is_said_in_one_line(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    token = data / "admin.token"
    token.write_text("secret")
    token.chmod(0o644)
    assert refused(data) == f"Others can read {token}: `chmod 600 {token}` mends it."


def test_make_up_starts_it_with_its_arguments() -> None:
    made = subprocess.run(
        ["make", "--dry-run", "--no-print-directory", "up", "ARGS=--port 9000"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert made.stdout.splitlines()[-1] == "exec .venv/bin/python -m sweephand up --port 9000"


def _is_closed(url: str) -> bool:
    try:
        httpx.get(f"{url}/api/v1/health", timeout=5)
    except httpx.ConnectError:
        return True
    except httpx.TransportError:
        return False  # between open and closed
    return False
