"""Every page of the console, with something to see on it."""

from __future__ import annotations

from typing import Any, Final

from tests.console.furniture import FILE, Says, others, sales, template
from tests.console.server import Server

_OWNS: Final = "document.title='owned';alert(1)"
IMAGE: Final = f'<img src=x onerror="{_OWNS}">'
CANARY: Final = f"<script>{_OWNS}</script>{IMAGE}"
"""Text that would take over a page which took it for HTML."""


def furnish(server: Server, odd: str = CANARY) -> dict[str, str]:
    """Jobs, runs, shared things and backfills, with `odd` in every text; the addresses of the pages that show them."""

    def says(plain: str) -> str:
        return f"{plain} {odd}".rstrip()

    _share(server, says)
    for job in (sales(says), *others(says)):
        server.put(**job)
    backfill = _backfills(server, says)
    runs = _runs(server, says)
    _pull_work(server, says)
    server.call("POST", "/jobs/nightly-cleanup/pause", {"note": says("until the move is over")})
    (server.jobs / "team").mkdir()
    (server.jobs / "team" / "archive.yaml").write_text(FILE)
    (server.jobs / f"{odd.replace('/', '|') or 'broken'}.yaml").write_text(f"name: wrong\n'{odd or 'comand'}': x\n")
    return {**PLACES, **runs, "backfill": f"/jobs/hourly-check/backfills/{backfill}"}


PLACES: Final = {
    "overview": "/",
    "jobs": "/jobs",
    "new-job": "/jobs/new",
    "edit-job": "/jobs/daily-sales/edit",
    "edit-yaml": "/jobs/daily-sales/edit?view=yaml",
    "job": "/jobs/daily-sales",
    "job-runs": "/jobs/daily-sales/runs",
    "job-history": "/jobs/daily-sales/history",
    "job-calendar": "/jobs/hourly-check/calendar",
    "job-backfills": "/jobs/hourly-check/backfills",
    "job-definition": "/jobs/daily-sales/definition",
    "job-versions": "/jobs/daily-sales/versions",
    "runs": "/runs",
    "backfills": "/backfills",
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


def _share(server: Server, says: Says) -> None:
    server.call("PUT", "/pools/warehouse", {"slots": 4})
    server.call("PUT", "/calendars/business-days", {"weekdays": ["mon", "tue", "wed", "thu", "fri"]})
    server.call("PUT", "/secrets/warehouse-dsn", {"value": "postgres://nobody"})
    server.call("PUT", "/templates/regional", template(says))
    server.call("PUT", "/namespaces/marketing", {"description": says("What the campaigns need.")})
    server.call("PUT", "/namespaces/default/members/ann@example.org", {"role": "operator"})
    server.call("POST", "/tokens", {"role": "editor", "name": says("deployments")})


def _backfills(server: Server, says: Says) -> str:
    """One that goes through, and one that is cancelled; the id of the first."""
    window = {"from": "2026-01-01T00:00:00Z", "to": "2026-01-02T00:00:00Z", "only": "all"}
    path = "/jobs/hourly-check/backfills"
    kept: str = server.call("POST", path, {**window, "note": says("the shop was moved")})["backfillId"]
    other = {**window, "to": "2026-03-01T00:00:00Z", "maxActive": 1, "note": says("all of the winter")}
    ended = server.call("POST", path, other)["backfillId"]
    server.call("POST", f"{path}/{ended}/cancel", {"note": says("it takes too long")})
    return kept


def _runs(server: Server, says: Says) -> dict[str, str]:
    """Runs that came to every end, and what people said about them; where to look at them."""
    job = "/jobs/daily-sales"

    def trigger(exits: int, note: str) -> str:
        run: str = server.call("POST", f"{job}/trigger", {"params": {"exit": exits}, "note": says(note)})["runId"]
        return f"{job}/runs/{run}"

    bad, asks, told = trigger(1, "once more"), trigger(0, "for the board"), trigger(0, "for the branches")
    marked, cancelled = trigger(0, "as a test"), trigger(0, "by mistake")
    for run in (asks, told, marked, cancelled):
        server.asks(run, "publish")
    server.call("POST", f"{told}/tasks/publish/approve", {"note": says("seen and found good")})
    server.call("POST", f"{marked}/tasks/publish/mark", {"state": "skipped", "note": says("nobody reads it")})
    server.call("POST", f"{cancelled}/cancel", {"note": says("the figures were wrong")})
    server.call("POST", "/jobs/import-orders/trigger", {})
    server.call("POST", "/jobs/import-orders/trigger", {"note": says("the next page")})
    server.call("POST", "/jobs/load-orders/trigger", {})
    server.call("POST", "/events", {"source": says("shop"), "type": says("customer.new"), "id": says("4711")})
    server.call("POST", "/datasets/orders.loaded/updates", {"id": says("by hand")})
    for run, state in ((bad, "failed"), (told, "succeeded"), (cancelled, "cancelled")):
        server.ended(run, state)
    rerun = server.call("POST", f"{bad}/rerun", {"from": "failed", "note": says("the table is there now")})["runId"]
    server.ended(f"{job}/runs/{rerun}", "failed")
    return {
        "run": bad,
        "run-timeline": f"{told}?view=timeline",
        "run-approval": asks,
        "run-rerun": f"{job}/runs/{rerun}",
        "task": f"{bad}?task=load",
        "task-mapped": f"{bad}?task=rates",
    }


def _pull_work(server: Server, says: Says) -> None:
    """An external worker holds one task, and has said of others how they ended."""
    for _ in range(3):
        server.call("POST", "/jobs/fleet-sync/trigger", {})
    work: list[dict[str, Any]] = []
    for _ in range(60):
        if len(work) == 3:
            break
        work += server.call("POST", "/leases", {"workerId": "depot-berlin-1", "max": 3, "waitSeconds": 1})["items"]
    failed, skipped, _held = work
    error = {"name": says("OutOfReach"), "message": says("vehicle 12 does not answer")}
    server.call("POST", f"/leases/{failed['lease']}/fail", {"epoch": failed["epoch"], "error": error})
    body = {"epoch": skipped["epoch"], "skipped": says("nothing has changed")}
    server.call("POST", f"/leases/{skipped['lease']}/complete", body)
