"""Cold starts: importing each handler in a fresh process, beside importing boto3 and making the clients it needs.

Both in turns within one run, the least of several, in seconds of CPU: what disturbs them only adds. What
Lambda adds before and after is the same for both.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from sweephand.settings import Settings
from sweephand.topology import FUNCTIONS

ROUNDS = 15
ROOT = Path(__file__).parents[1]
STORES = ("dynamodb", "sqs")
CLIENTS = {
    "tick": STORES,
    "sweep": STORES,
    "attempt": (*STORES, "lambda", "stepfunctions"),
    "execute": (),
    "call": (),
    "project": (*STORES, "firehose"),
    "audit": STORES,
    "watch": STORES,
    "api": STORES,
    "authorize": STORES,
    "live": (*STORES, "apigatewaymanagementapi"),
}
BARS = {"tick": 1.25, "sweep": 1.25, "attempt": 1.25, "project": 1.25, "api": 2.0}
_TIMED = "from time import process_time\nbegun = process_time()\n{what}\nprint(process_time() - begun)\n"


def main() -> None:
    print(f"{'function':10} {'boto3 and clients':>18} {'handler':>10} {'ratio':>7} {'bar':>6}")
    over = []
    for function in FUNCTIONS:
        name, clients = function.name, CLIENTS[function.name]
        bare = "import boto3\n" + "".join(f"boto3.client({one!r})\n" for one in clients) if clients else "import json"
        rounds = [(_seconds(name, bare), _seconds(name, "import handler")) for _ in range(ROUNDS)]
        before, after = (min(column) for column in zip(*rounds, strict=True))
        bar = BARS.get(name)
        shown = f"{after / before:7.2f} {bar if bar else '-':>6}" if clients else f"{'-':>7} {'-':>6}"
        print(f"{name:10} {before * 1000:15.0f} ms {after * 1000:7.0f} ms {shown}")
        if bar and after / before > bar:
            over.append(name)
    assert not over, f"These start too slowly: {', '.join(over)}"


def _seconds(function: str, what: str) -> float:
    environ = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(ROOT / "layers" / "core" / "python"),
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "none",
        "AWS_SECRET_ACCESS_KEY": "none",
        "AWS_LAMBDA_FUNCTION_NAME": f"sweephand-{function}",
        **Settings(issuer="https://pool.test", live="https://live.test").to_environ(),
    }
    done = subprocess.run(
        [sys.executable, "-c", _TIMED.format(what=what)],
        cwd=ROOT / "functions" / function,
        env=environ,
        capture_output=True,
        text=True,
        check=True,
    )
    return float(done.stdout.splitlines()[-1])
