"""Every page of the console, with something to see on it."""

from __future__ import annotations

from threading import Event
from typing import Any, Final

from tests.console.server import Server

CANARY: Final = "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
"""Text that would take over a page which took it for HTML."""

SALES: Final[dict[str, Any]] = {
    "name": "daily-sales",
    "description": f"Extracts, loads and reports the sales of a day. {CANARY}",
    "schedule": {"cron": "30 2 * * *", "timezone": "America/New_York"},
    "tags": ["finance", "<b>bold</b>"],
    "params": {"region": "eu", "note": CANARY},
    "retry": {"attempts": 2, "delay": "1s"},
    "tasks": [
        {"id": "extract", "run": {"command": ["sh", "-c", f"echo 'reading {CANARY}'; echo >&2 careful"]}},
        {"id": "clean", "needs": ["extract"], "group": "prepare", "run": {"command": ["true"]}},
        {"id": "enrich", "needs": ["extract"], "group": "prepare", "run": {"command": ["true"]}},
        {
            "id": "load",
            "needs": ["clean", "enrich"],
            "run": {"command": ["sh", "-c", "echo loading; exit ${params.exit}"]},
        },
        {"id": "publish", "needs": ["load"], "run": {"approval": {"message": f"Publish? {CANARY}"}}},
        {"id": "report", "needs": ["publish"], "run": {"command": ["echo", "reported"]}},
    ],
}


def furnish(server: Server) -> dict[str, str]:
    """Jobs, runs, shared things and a backfill; the addresses of the pages that show them."""
    server.put(**SALES)
    good = server.call("POST", "/jobs/daily-sales/trigger", {"params": {"exit": 0}, "note": CANARY})["runId"]
    bad = server.call("POST", "/jobs/daily-sales/trigger", {"params": {"exit": 1}})["runId"]
    server.put(name="hourly-check", description="Looks whether the shop answers.", schedule="0 * * * *", command="true")
    server.put(name="nightly-cleanup", schedule={"cron": "0 3 * * *"}, command="true", tags=["house"])
    server.call("POST", "/jobs/nightly-cleanup/pause", {"note": CANARY})
    server.call("PUT", "/pools/warehouse", {"slots": 4})
    server.call("PUT", "/calendars/business-days", {"weekdays": ["mon", "tue", "wed", "thu", "fri"]})
    server.call("PUT", "/secrets/warehouse-dsn", {"value": "postgres://nobody"})
    window = {"from": "2026-01-01T00:00:00Z", "to": "2026-01-02T00:00:00Z", "only": "all", "note": CANARY}
    backfill = server.call("POST", "/jobs/hourly-check/backfills", window)["backfillId"]
    _await(server, bad, "failed")
    return {
        "overview": "/",
        "jobs": "/jobs",
        "new-job": "/jobs/new",
        "edit-job": "/jobs/daily-sales/edit",
        "job": "/jobs/daily-sales",
        "job-runs": "/jobs/daily-sales/runs",
        "job-history": "/jobs/daily-sales/history",
        "job-calendar": "/jobs/daily-sales/calendar",
        "job-backfills": "/jobs/hourly-check/backfills",
        "job-definition": "/jobs/daily-sales/definition",
        "job-versions": "/jobs/daily-sales/versions",
        "run": f"/jobs/daily-sales/runs/{bad}",
        "run-approval": f"/jobs/daily-sales/runs/{good}",
        "task": f"/jobs/daily-sales/runs/{bad}?task=load",
        "runs": "/runs",
        "backfills": "/backfills",
        "backfill": f"/jobs/hourly-check/backfills/{backfill}",
        "deadletters": "/deadletters",
        "workers": "/workers",
        "calendars": "/shared/calendars",
        "pools": "/shared/pools",
        "templates": "/shared/templates",
        "secrets": "/shared/secrets",
        "datasets": "/shared/datasets",
        "files": "/shared/files",
        "audit": "/audit",
        "namespaces": "/access",
        "members": "/access/members",
        "tokens": "/access/tokens",
        "nowhere": "/no/such/page",
    }


def _await(server: Server, run: str, state: str) -> None:
    for _ in range(600):
        if server.call("GET", f"/jobs/daily-sales/runs/{run}")["state"] == state:
            return
        Event().wait(0.1)
    raise AssertionError(f"{run} is not {state}")
