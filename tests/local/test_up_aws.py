"""`sweephand up` with tasks that call AWS: only what the command line names, with the credentials of its user."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from sweephand.local.cloud.account import ENVIRONMENT
from tests.local.test_up import Up, refused, up

ORDERS = "arn:aws:sqs:us-east-1:123456789012:orders"


class Queue(BaseHTTPRequestHandler):
    """SQS on this machine: takes every message."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.taken.append(json.loads(body))  # type: ignore[attr-defined]
        content = json.dumps({"MessageId": "m-1"}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/x-amz-json-1.0")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Nobody reads it."""


@contextmanager
def queue() -> Iterator[tuple[str, list[Any]]]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Queue) as server:
        server.taken = []  # type: ignore[attr-defined]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}", server.taken  # type: ignore[attr-defined]
        server.shutdown()


def saved(place: Up, run: dict[str, Any]) -> str:
    """What is said of a job that is saved: nothing, or why not."""
    name = f"job-{next(iter(run)).lower()}"
    answer = place.client.post("/jobs", json={"name": name, "run": run, "timeout": "10s"})
    return "" if answer.status_code == 201 else str(answer.json()["detail"])


def test_what_the_command_line_names_is_called_and_all_else_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    with queue() as (address, taken):
        monkeypatch.setenv("AWS_ENDPOINT_URL", address)
        options = ("--no-examples", "--aws-target", ORDERS, "--aws-action", "glue:StartJobRun")
        with up(tmp_path / "data", *options) as place:
            assert saved(place, {"sqs": "orders", "body": {"a": 1}}) == ""
            run = place.trigger("job-sqs")
            assert place.await_state("job-sqs", run, "succeeded")["output"] == {"messageId": "m-1"}
            assert saved(place, {"awsSdk": {"service": "glue", "action": "StartJobRun"}}) == ""
            remedy = "Start with --aws-target 'arn:aws:sns:REGION:ACCOUNT:news' to allow it."
            assert saved(place, {"sns": "news"}) == f"Tasks may not call 'news' from here. {remedy}"
    (message,) = taken
    assert json.loads(message["MessageBody"]) == {"a": 1}


def test_by_default_nothing_may_be_called(tmp_path: Path) -> None:
    with up(tmp_path / "data", "--no-examples") as place:
        assert f"--aws-target '{ORDERS}'" in saved(place, {"sqs": ORDERS})
        said = saved(place, {"awsSdk": {"service": "glue", "action": "StartJobRun"}})
        assert "--aws-action 'glue:StartJobRun'" in said


def test_an_entry_that_could_be_anything_is_refused_at_the_start(tmp_path: Path) -> None:
    assert "'*' is no target" in refused(tmp_path / "data", "--aws-target", "*")
    assert "'iam:PassRole' is about rights" in refused(tmp_path / "data", "--aws-action", "iam:PassRole")
