"""A secret that must be found nowhere, jobs that say it in every way they can, and where to look for it."""

from __future__ import annotations

import json
import sys
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import boto3

from sweephand.local.cloud import Deployment
from sweephand.local.cloud.account import CONFIG, artifacts_bucket
from sweephand.topology import ARCHIVE, QUEUES, TABLES
from tests.api.client import Client
from tests.operators.web import Answering, Web, serving

CANARY: Final = "canary/4f9c2e71+do-not-keep"
FORMS: Final = (
    CANARY,
    quote(CANARY, safe=""),
    b64encode(CANARY.encode()).decode().rstrip("="),
    CANARY.replace("/", "\\/"),
    CANARY[:-6],  # of one that was cut, the beginning or the end
    CANARY[6:],
)

Jobs = dict[str, dict[str, Any]]
"""The `run` of each job by its name."""
_DECLARED: Final = {"secrets": {"DB": "canary"}}
_LOADS: Final = "import os, sys, json, base64, urllib.parse\n"
_SAYS: Final = f"{_LOADS}db = os.environ['DB']\n"
_READS: Final = f"{_LOADS}db = open(os.environ['SWEEPHAND_SECRETS'] + '/DB').read()\n"
_COMMANDS: Final = {
    "prints": "print('a', db); print('b', db, file=sys.stderr)",
    "encodes": "print(base64.b64encode(db.encode()).decode(), urllib.parse.quote(db, safe=''), json.dumps([db]))",
    "outputs": "json.dump({'url': 'db://' + db, db: [db]}, open(os.environ['SWEEPHAND_OUTPUT'], 'w'))",
    "outputs-much": "json.dump([db, 'x' * 9_000, db], open(os.environ['SWEEPHAND_OUTPUT'], 'w'))",
    "fails": "print(db, file=sys.stderr); sys.exit(3)",
    "raises": "raise RuntimeError('cannot reach ' + db)",
    "is-cut": "sys.stderr.write('x' * 70_000 + db * 100 + 'y' * 790); sys.exit(3)",
    "reports": "open(os.environ['SWEEPHAND_PROGRESS'], 'w').write(db)",
    "garbles": "open(os.environ['SWEEPHAND_OUTPUT'], 'w').write('{\"' + db)",
}
_FUNCTIONS: Final = """
import os
def returns(): return {"db": os.environ["DB"], "long": os.environ["DB"] * 3}
def raises(): raise ValueError("x" * 985 + os.environ["DB"])
def looks_up(): return {}[os.environ["DB"]]
"""


def programs() -> Jobs:
    """Commands: what they are given is in their environment."""
    env = {"URL": "db://user:${secrets.DB}@host"}
    sources = {**_COMMANDS, "templates": "print(os.environ['URL'])"}
    return {
        name: {"command": [sys.executable, "-c", _SAYS + source], "env": env, **_DECLARED}
        for name, source in sources.items()
    }


def functions(folder: Path) -> Jobs:
    """The same of functions in Python, whose code is put into the folder."""
    (folder / "saying.py").write_text(_FUNCTIONS)
    return {
        f"function-{name}": {"python": f"saying:{name}", "env": {"PYTHONPATH": str(folder)}, **_DECLARED}
        for name in ("returns", "raises", "looks_up")
    }


def containers() -> Jobs:
    """The same of containers, which find it in a file."""
    return {
        f"container-{name}": {
            "container": {"image": "team/report:1", "command": [sys.executable, "-c", _READS + source], **_DECLARED}
        }
        for name, source in _COMMANDS.items()
    }


# Whoever is asked says again what it was asked, in all that an answer has.


def _echo(call: Answering) -> str:
    return f"{call.path} {call.asked.headers.get('authorization')} {call.asked.body.decode()}"


def _answers(call: Answering) -> None:
    document = {"path": call.path, "asked": dict(call.asked.headers), CANARY: [call.asked.body.decode()]}
    call.answer(200, json.dumps(document).encode(), Content_Type="application/json")


def _marks(call: Answering) -> None:
    """The last header is cut where it is shown, in the midst of the value."""
    db = call.asked.headers["authorization"].removeprefix("Bearer ")
    call.answer(200, db.encode() * 300, ETag=db, X_Request_Id="x" * (256 - len(db) + 5) + db)


def _postpones(call: Answering) -> None:
    """Once; the time to come back is cut where it is shown."""
    db = call.asked.headers["authorization"].removeprefix("Bearer ")
    is_known = any(one is not call.asked and one.target == call.path for one in call.web.asked)
    call.answer(200) if is_known else call.answer(503, Retry_After="x" * (64 - len(db) + 5) + db)


_ROUTES: Final = {
    "answers": _answers,
    "quotes": lambda call: call.answer(200, _echo(call).encode()),
    "fails": lambda call: call.answer(500, _echo(call).encode()),
    "denies": lambda call: call.answer(403, b"x" * 390 + _echo(call).encode()),
    "marks": _marks,
    "postpones": _postpones,
    "leads-on": lambda call: call.answer(302, Location=f"/quotes?again={CANARY}"),
    "leads-astray": lambda call: call.answer(302, Location=f"ftp://127.0.0.1/{CANARY}"),
    "leads-inside": lambda call: call.answer(302, Location=f"http://169.254.169.254/{CANARY}?{CANARY}"),
}


@contextmanager
def asked() -> Iterator[Web]:
    """Whom requests and sensors ask."""
    with serving({f"/{name}": route for name, route in _ROUTES.items()}) as web:
        yield web


def was_told(web: Web) -> bool:
    """Whether the value came to whom it was sent, in every part of a request."""
    parts = ((one.target, one.headers.get("authorization", ""), one.body) for one in web.asked)
    return any(all(CANARY in str(part) for part in told) for told in parts)


def requests(web: Web, timeout: str) -> Jobs:
    """Requests that say it in their address, a header and the body, and sensors that say it in the first two."""
    found: Jobs = {"http-is-no-url": {"http": {"url": "${secrets.DB}", **_DECLARED}}}
    for name in _ROUTES:
        spec = {
            "url": web.url(f"/{name}?{timeout}&db=${{secrets.DB}}"),
            "headers": {"Authorization": "Bearer ${secrets.DB}"},
            **_DECLARED,
        }
        found[f"http-{name}"] = {"http": {**spec, "method": "POST", "body": {"db": "${secrets.DB}"}}}
        spec["url"] = web.url(f"/{name}?{timeout}&sensor&db=${{secrets.DB}}")
        found[f"sensor-{name}"] = {"sensor": {"http": spec, "every": "1s", "timeout": "5s"}}
    return found


def created(admin: Client, jobs: Mapping[str, Mapping[str, Any]], *, timeout: str, attempts: int = 2) -> list[str]:
    """Store the canary and the jobs, and begin a run of each; the names of the jobs."""
    admin.put("/secrets/canary", {"value": CANARY}, Idempotency_Key="canary")
    retry = {"attempts": attempts, "delays": ["1s"]}
    named = {f"{name}-{timeout}": run for name, run in jobs.items()}
    for name, run in named.items():
        admin.post("/jobs", {"name": name, "run": run, "timeout": timeout, "retry": retry}).expect(201)
        admin.post(f"/jobs/{name}/trigger", {}, Idempotency_Key=name).expect(202)
    return list(named)


def offer_outside(admin: Client) -> None:
    """A run for an external worker."""
    run = {"external": {"secrets": {"DB": "canary"}}}
    admin.post("/jobs", {"name": "outside", "run": run, "retries": 1}).expect(201)
    admin.post("/jobs/outside/trigger", {}).expect(202)


def work_outside(worker: Client, *, epoch: int) -> None:
    """What an external worker does that says what it was given whenever it can."""
    (work,) = worker.post("/leases", {"workerId": "w"}, Idempotency_Key=f"lease-{epoch}").expect(200).items
    value = work["secrets"]["DB"]
    assert value == CANARY
    path = f"/leases/{work['lease']}"
    worker.post(f"{path}/heartbeat", {"epoch": epoch, "checkpoint": {"at": value}}, Idempotency_Key=f"b{epoch}")
    if epoch == 1:
        error = {"name": "Refused", "message": f"by {value}"}
        worker.post(f"{path}/fail", {"epoch": epoch, "error": error}, Idempotency_Key="fail").expect(200)
    else:
        worker.post(f"{path}/complete", {"epoch": epoch, "output": {"db": value}}, Idempotency_Key="done").expect(200)


def shown(admin: Client, names: list[str]) -> list[str]:
    """What the API answers about all of it."""
    paths = ["/secrets", "/secrets/canary", "/audit?limit=1000", "/runs", "/jobs", "/deadletters", "/workers", "/stats"]
    for name in names:
        paths += [f"/jobs/{name}", f"/jobs/{name}/runs", f"/jobs/{name}/why"]
        runs = admin.get(f"/jobs/{name}/runs").expect(200).items
        paths += [
            f"/jobs/{name}/runs/{run['runId']}{more}"
            for run in runs
            for more in ("", "/why", "/tasks", "/logs", "/artifacts")
        ]
    return [admin.get(path).expect(200).text for path in paths]


def stored(deployment: Deployment) -> Iterator[tuple[str, str]]:
    """Every item, message, object and line that is at rest in an account."""
    names, dynamodb = deployment.names, boto3.client("dynamodb", config=CONFIG)
    for table in TABLES:
        for page in dynamodb.get_paginator("scan").paginate(TableName=names.table(table)):
            yield from ((table.name, json.dumps(item, default=str, ensure_ascii=False)) for item in page["Items"])
    for queue in QUEUES:
        for name in (queue.name, queue.dead):
            url = deployment.sqs.get_queue_url(QueueName=names.queue(name))["QueueUrl"]
            while received := deployment.sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages"):
                yield from ((name, message["Body"]) for message in received)
    s3 = boto3.client("s3", config=CONFIG)
    for name, bucket in ((ARCHIVE, names.of(ARCHIVE)), ("artifacts", artifacts_bucket(names))):
        for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket):
            for entry in page.get("Contents", ()):
                content = s3.get_object(Bucket=bucket, Key=entry["Key"])["Body"].read()
                yield name, f"{entry['Key']} {content.decode(errors='replace')}"
    yield from (("logs", line) for line in _logged(names.run_log))


def _logged(group: str) -> Iterator[str]:
    logs = boto3.client("logs", config=CONFIG)
    for page in logs.get_paginator("describe_log_streams").paginate(logGroupName=group):
        for stream in page["logStreams"]:
            where = {"logGroupName": group, "logStreamName": stream["logStreamName"], "startFromHead": True}
            answer = logs.get_log_events(**where)
            while answer["events"]:
                yield from (event["message"] for event in answer["events"])
                answer = logs.get_log_events(**where, nextToken=answer["nextForwardToken"])


def found(text: str | bytes) -> list[str]:
    """The forms of the canary that are in a text."""
    said = text.decode(errors="replace") if isinstance(text, bytes) else text
    return [form for form in FORMS if form in said]
