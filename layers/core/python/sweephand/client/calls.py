"""The calls of the API, named by what they do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from threading import Event
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

from sweephand.client.connection import Connection
from sweephand.client.resources import Code, Leases, Members, Namespaces, Shared, Tokens
from sweephand.client.transport import TRIES_MAX, Document, Transport, moment, segments
from sweephand.errors import InvalidInput

if TYPE_CHECKING:
    from typing import Self

    from sweephand.ports import Dice

__all__ = ["Client"]

TIMEOUT: Final = timedelta(seconds=30)
FOLLOW_EVERY_S: Final = 0.3


class Client:
    """Sweephand over HTTP.

    What is not given comes from SWEEPHAND_URL, SWEEPHAND_TOKEN and SWEEPHAND_NAMESPACE, then from the file that
    `sweephand login` writes, then from the local default. Answers are the API's JSON; refusals are `sweephand.errors`.
    Every call is safe to repeat, and is repeated a few times where the server is unavailable.
    """

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        namespace: str | None = None,
        timeout: timedelta = TIMEOUT,
        *,
        tries_max: int = TRIES_MAX,
        dice: Dice | None = None,
        wait: Callable[[float], object] | None = None,
    ) -> None:
        connection = Connection.of(url, token, namespace)
        self.url = connection.url
        self.namespace = connection.namespace
        self._wait = wait or Event().wait
        self._http = Transport(connection, timeout_s=timeout.total_seconds(), tries_max=tries_max, dice=dice, wait=wait)
        self.calendars = Shared(self._http, "calendars")
        self.pools = Shared(self._http, "pools")
        self.templates = Shared(self._http, "templates")
        self.secrets = Shared(self._http, "secrets")
        self.namespaces = Namespaces(self._http)
        self.members = Members(self._http)
        self.tokens = Tokens(self._http)
        self.leases = Leases(self._http)
        self.code = Code(self._http)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Give the connections back."""
        self._http.close()

    # Jobs.

    def create(self, definition: Mapping[str, Any]) -> Document:
        """A new job; a Conflict where its name is taken."""
        return self._post("/jobs", definition)

    def put(self, definition: Mapping[str, Any], *, version: int | None = None) -> Document:
        """The job's next version, if `version` is still the current one; without it, a new job."""
        condition = {"If-None-Match": "*"} if version is None else {"If-Match": str(version)}
        answer: Document = self._http.send("PUT", _job(_name(definition)), body=definition, headers=condition)
        return answer

    def get(self, job: str) -> Document:
        """One job: its definition, version, status and next fires."""
        return self._get(_job(job))

    def jobs(
        self,
        *,
        prefix: str | None = None,
        tag: str | None = None,
        status: str | None = None,
        search: str | None = None,
    ) -> Iterator[Document]:
        """Every job, page after page; `search` is a part of a name, of a tag, or of a description's beginning."""
        return self._http.pages("/jobs", {"prefix": prefix, "tag": tag, "status": status, "search": search})

    def delete(self, job: str, *, cancel: bool = False, version: int | None = None) -> None:
        """Nothing fires any more; active runs finish, unless they are to be cancelled. With a `version`, only if it is
        still the current one."""
        condition = {} if version is None else {"If-Match": str(version)}
        self._http.send("DELETE", _job(job), query={"cancel": cancel or None}, headers=condition)

    def pause(self, job: str) -> Document:
        """Nothing fires until it is resumed."""
        return self._post(_job(job, "pause"))

    def resume(self, job: str, *, catchup: str = "none", dry_run: bool = False) -> Document:
        """It fires again; `catchup` decides about the fires of the pause."""
        return self._post(_job(job, "resume"), {"catchup": catchup, "dryRun": dry_run})

    def trigger(self, job: str, *, params: Mapping[str, Any] | None = None, note: str | None = None) -> Document:
        """A run now, beside the schedule."""
        return self._post(_job(job, "trigger"), _given(params=params, note=note))

    def versions(self, job: str) -> Iterator[Document]:
        """Every version of its definition, the newest first."""
        return self._http.pages(_job(job, "versions"))

    def rollback(self, job: str, version: int) -> Document:
        """A new version that says what an old one said."""
        return self._post(_job(job, "rollback"), {"version": version})

    def fires(
        self, job: str, *, start: datetime | None = None, end: datetime | None = None, count: int | None = None
    ) -> list[Document]:
        """The nominal fire times to come."""
        answer = self._get(_job(job, "fires"), {"from": moment(start), "to": moment(end), "count": count})
        return list(answer["items"])

    def upcoming(self, *, within: str | None = None, limit: int | None = None, cursor: str | None = None) -> Document:
        """A page of the next fires across jobs, soonest first; `truncated` where not every job was looked at."""
        return self._get("/upcoming", {"within": within, "limit": limit, "cursor": cursor})

    def ledger(self, job: str, *, start: datetime | None = None, end: datetime | None = None) -> Iterator[Document]:
        """What became of every nominal fire."""
        return self._http.pages(_job(job, "ledger"), {"from": moment(start), "to": moment(end)})

    def why(self, job: str, run: str | None = None, task: str | None = None) -> Document:
        """What keeps a job, a run or a task from going on."""
        if run is None:
            return self._get(_job(job, "why"))
        return self._get(_run(job, run, "why") if task is None else _run(job, run, "tasks", task, "why"))

    def plan(self, definition: Mapping[str, Any]) -> Document:
        """What a definition would mean, and change; nothing is stored."""
        return self._post("/plan", definition)

    # Backfills.

    def backfill(
        self,
        job: str,
        *,
        start: datetime,
        end: datetime,
        only: str = "missing",
        order: str = "oldest",
        max_active: int | None = None,
        collapse: bool = False,
        dry_run: bool = False,
        note: str | None = None,
    ) -> Document:
        """Make up for the fires of a window; a dry run only says what that comes to."""
        window = {"from": moment(start), "to": moment(end), "only": only, "order": order}
        how = {"collapse": collapse, "dryRun": dry_run, **_given(maxActive=max_active, note=note)}
        return self._post(_job(job, "backfills"), {**window, **how})

    def backfills(self, job: str) -> Iterator[Document]:
        """A job's backfills, the newest first."""
        return self._http.pages(_job(job, "backfills"))

    def get_backfill(self, job: str, backfill: str) -> Document:
        """One backfill: how far it is, and what came of its runs."""
        return self._get(_job(job, "backfills", backfill))

    def pause_backfill(self, job: str, backfill: str, *, note: str = "") -> Document:
        """It puts no more runs; those under way go on."""
        return self._post(_job(job, "backfills", backfill, "pause"), {"note": note})

    def resume_backfill(self, job: str, backfill: str, *, note: str = "") -> Document:
        """It goes on where it was paused."""
        return self._post(_job(job, "backfills", backfill, "resume"), {"note": note})

    def cancel_backfill(self, job: str, backfill: str, *, running: bool = False, note: str = "") -> Document:
        """It ends: what has not started never does; what has goes on, unless that is to end too."""
        return self._post(_job(job, "backfills", backfill, "cancel"), {"running": running, "note": note})

    # Runs.

    def runs(
        self, job: str, *, state: str | None = None, start: datetime | None = None, end: datetime | None = None
    ) -> Iterator[Document]:
        """A job's runs, the newest first."""
        return self._http.pages(_job(job, "runs"), {"state": state, "from": moment(start), "to": moment(end)})

    def all_runs(
        self,
        *,
        state: str | None = None,
        start: datetime | None = None,
        end: datetime | None = None,
        tag: str | None = None,
        job: str | None = None,
    ) -> Iterator[Document]:
        """Runs across jobs, the newest first; without `start`, those that fired in the last day."""
        query = {"state": state, "from": moment(start), "to": moment(end), "tag": tag, "job": job}
        return self._http.pages("/runs", query)

    def run(self, job: str, run: str) -> Document:
        """One run with its tasks and attempts."""
        return self._get(_run(job, run))

    def tasks(self, job: str, run: str) -> Iterator[Document]:
        """The tasks of a run."""
        return self._http.pages(_run(job, run, "tasks"))

    def logs(
        self,
        job: str,
        run: str,
        *,
        task: str | None = None,
        attempt: int | None = None,
        after: str | None = None,
        tail: int | None = None,
    ) -> Document:
        """A page of what the run's attempts printed; its `nextCursor` is the `after` of the next page, which may still
        be empty, and None once no more will come."""
        query = {"task": task, "attempt": attempt, "after": after, "tail": tail}
        return self._get(_run(job, run, "logs"), query)

    def log_lines(
        self,
        job: str,
        run: str,
        *,
        task: str | None = None,
        attempt: int | None = None,
        tail: int | None = None,
        follow: bool = False,
    ) -> Iterator[Document]:
        """Every line so far, or from the last ones on; with `follow`, also what comes until the run ends."""
        after = None
        while True:
            page = self.logs(job, run, task=task, attempt=attempt, after=after, tail=None if after else tail)
            yield from page["items"]
            after = page["nextCursor"]
            if after is None or not (page["more"] or follow):
                return
            if not page["more"]:
                self._wait(FOLLOW_EVERY_S)

    def artifacts(self, job: str, run: str, *, task: str | None = None) -> Iterator[Document]:
        """The files that the run's attempts left behind, each with an address: a short-lived one, or a path of this
        server that takes the token."""
        return self._http.pages(_run(job, run, "artifacts"), {"task": task})

    def cancel(self, job: str, run: str) -> Document:
        """The run, which ends as soon as it can."""
        return self._post(_run(job, run, "cancel"))

    def cancel_task(self, job: str, run: str, task: str, *, note: str = "") -> Document:
        """The task, which is over; the others go on."""
        return self._post(_run(job, run, "tasks", task, "cancel"), {"note": note})

    def mark_task(self, job: str, run: str, task: str, state: str, *, note: str = "") -> Document:
        """The task, which is over: succeeded, failed or skipped, as is said."""
        return self._post(_run(job, run, "tasks", task, "mark"), {"state": state, "note": note})

    def retry_task(self, job: str, run: str, task: str, *, note: str = "") -> Document:
        """The task, whose next attempt begins at once."""
        return self._post(_run(job, run, "tasks", task, "retry"), {"note": note})

    def approve_task(self, job: str, run: str, task: str, *, note: str = "") -> Document:
        """The task that asked, which has succeeded by this."""
        return self._post(_run(job, run, "tasks", task, "approve"), {"note": note})

    def reject_task(self, job: str, run: str, task: str, *, note: str = "") -> Document:
        """The task that asked, which has failed by this."""
        return self._post(_run(job, run, "tasks", task, "reject"), {"note": note})

    def rerun(
        self,
        job: str,
        run: str,
        *,
        start: str = "all",
        task: str | None = None,
        mark: Mapping[str, str] | None = None,
        note: str | None = None,
    ) -> Document:
        """A new run of the same fire: of all tasks, of the failed ones, or from one task.

        With `start="failed"`, tasks that `mark` names are not done again: they count as `succeeded` or `skipped`.
        """
        given = _given(**{"from": start}, task=task, mark=dict(mark) if mark else None, note=note)
        return self._post(_run(job, run, "rerun"), given)

    def bulk(
        self,
        action: str,
        *,
        job: str | None = None,
        state: str | None = None,
        tag: str | None = None,
        start: datetime | None = None,
        end: datetime | None = None,
        dry_run: bool = False,
        cursor: str | None = None,
    ) -> Document:
        """Cancel or rerun one page of the runs that are chosen.

        The answer's `nextCursor` is the `cursor` of the same call for the next page, and None after the last. Without
        `start`, the runs are those that fired in the last day; without `state`, a rerun is of those that failed.
        """
        chosen = _given(job=job, state=state, tag=tag, to=moment(end), **{"from": moment(start)})
        body = {"action": action, "filter": chosen, "dryRun": dry_run}
        return self._post("/runs/bulk", {**body, **_given(cursor=cursor)})

    # Everything else.

    def events(
        self, source: str, type_: str, detail: Mapping[str, Any] | None = None, *, id_: str | None = None
    ) -> Document:
        """An event, which fires the jobs that wait for it; the same id again fires none."""
        return self._post("/events", {"source": source, "type": type_, "detail": dict(detail or {}), **_given(id=id_)})

    def files(self, *, status: str | None = None) -> Iterator[Document]:
        """Every job file that the server scans, and what became of it."""
        return self._http.pages("/files", {"status": status})

    def datasets(self) -> Iterator[Document]:
        """Every dataset: who publishes it, who subscribes to it, its last update."""
        return self._http.pages("/datasets")

    def update_dataset(self, dataset: str, *, id_: str | None = None) -> Document:
        """An update from outside, which runs who subscribes; the same id again runs nobody."""
        return self._post("/datasets" + segments(dataset, "updates"), _given(id=id_))

    def deadletters(self) -> Iterator[Document]:
        """Runs that failed for good, the newest first; the id of each is `job:run`."""
        return self._http.pages("/deadletters")

    def redrive(self, letter: str) -> Document:
        """A new run of the same fire as a failed one, whose id is `job:run`; asked again within a day, the same one."""
        return self._post("/deadletters" + segments(letter, "redrive"))

    def deadletter(self, letter: str) -> Document:
        """The run as it failed."""
        return self._get("/deadletters" + segments(letter))

    def redrive_all(self, *, job: str | None = None, dry_run: bool = False, cursor: str | None = None) -> Document:
        """New runs of all that failed for good, a page at a time; `nextCursor` is the cursor of the next call."""
        return self._post("/deadletters/redrive", {"dryRun": dry_run, **_given(job=job, cursor=cursor)})

    def audit(self) -> Iterator[Document]:
        """Who did what, the newest first."""
        return self._http.pages("/audit")

    def stats(self) -> Document:
        """Counts, lag and throughput."""
        return self._get("/stats")

    def health(self) -> Document:
        """Whether the server answers; needs no token."""
        return self._get("/health")

    def workers(self) -> Iterator[Document]:
        """Who pulls work, and what they hold."""
        return self._http.pages("/workers")

    def session(self) -> Document:
        """A JWT of one hour for the token; locally only."""
        return self._post("/session")

    def whoami(self) -> Document:
        """Who the token's owner is here: the role, and the namespaces that may be named."""
        return self._get("/session")

    def _get(self, path: str, query: Mapping[str, object] | None = None) -> Document:
        answer: Document = self._http.send("GET", path, query=query)
        return answer

    def _post(self, path: str, body: Mapping[str, Any] | None = None) -> Document:
        answer: Document = self._http.send("POST", path, body=dict(body or {}))
        return answer


def _job(job: str, *rest: str) -> str:
    return "/jobs" + segments(job, *rest)


def _run(job: str, run: str, *rest: str) -> str:
    return "/jobs" + segments(job, "runs", run, *rest)


def _name(definition: Mapping[str, Any]) -> str:
    name = definition.get("name")
    if not isinstance(name, str):
        raise InvalidInput("A definition needs a name.", "name")
    return name


def _given(**values: object) -> Document:
    return {name: value for name, value in values.items() if value is not None}
