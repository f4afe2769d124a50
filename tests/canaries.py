"""A secret that must be found nowhere, jobs that say it in every way they can, and where to look for it."""

from __future__ import annotations

import sys
from base64 import b64encode
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from tests.api.client import Client

CANARY: Final = "canary/4f9c2e71+do-not-keep"
FORMS: Final = (
    CANARY,
    quote(CANARY, safe=""),
    b64encode(CANARY.encode()).decode().rstrip("="),
    CANARY.replace("/", "\\/"),
    CANARY[:-6],  # of one that was cut, the beginning or the end
    CANARY[6:],
)

_SAYS: Final = "import os, sys, json, base64, urllib.parse\ndb = os.environ['DB']\n"
_COMMANDS: Final = {
    "prints": "print('a', db); print('b', db, file=sys.stderr)",
    "encodes": "print(base64.b64encode(db.encode()).decode(), urllib.parse.quote(db, safe=''), json.dumps([db]))",
    "outputs": "json.dump({'url': 'db://' + db, db: [db]}, open(os.environ['SWEEPHAND_OUTPUT'], 'w'))",
    "fails": "print(db, file=sys.stderr); sys.exit(3)",
    "raises": "raise RuntimeError('cannot reach ' + db)",
    "is-cut": "sys.stderr.write('x' * 70_000 + db * 100 + 'y' * 790); sys.exit(3)",
    "reports": "open(os.environ['SWEEPHAND_PROGRESS'], 'w').write(db)",
    "garbles": "open(os.environ['SWEEPHAND_OUTPUT'], 'w').write('{\"' + db)",
    "templates": "print(os.environ['URL'])",
}
_FUNCTIONS: Final = """
import os
def returns(): return {"db": os.environ["DB"], "long": os.environ["DB"] * 3}
def raises(): raise ValueError("x" * 985 + os.environ["DB"])
def looks_up(): return {}[os.environ["DB"]]
"""


def jobs(folder: Path) -> dict[str, dict[str, Any]]:
    """The `run` of each job by its name; the functions' code is put into the folder."""
    (folder / "saying.py").write_text(_FUNCTIONS)
    declared = {"secrets": {"DB": "canary"}}
    env = {"URL": "db://user:${secrets.DB}@host"}
    commands = {
        name: {"command": [sys.executable, "-c", _SAYS + source], "env": env, **declared}
        for name, source in _COMMANDS.items()
    }
    functions = {
        f"function-{name}": {"python": f"saying:{name}", "env": {"PYTHONPATH": str(folder)}, **declared}
        for name in ("returns", "raises", "looks_up")
    }
    return {**commands, **functions}


def created(admin: Client, folder: Path, *, timeout: str) -> list[str]:
    """Store the canary and the jobs, which fail twice at most; the names of the jobs."""
    admin.put("/secrets/canary", {"value": CANARY}, Idempotency_Key="canary")
    retry = {"attempts": 2, "delays": ["1s"]}
    named = {f"{name}-{timeout}": run for name, run in jobs(folder).items()}
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


def found(text: str | bytes) -> list[str]:
    """The forms of the canary that are in a text."""
    said = text.decode(errors="replace") if isinstance(text, bytes) else text
    return [form for form in FORMS if form in said]
