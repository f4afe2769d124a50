"""What a run's attempts printed, while it runs and afterwards, and the files that they left behind."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import islice
from typing import Annotated, Any, Final
from urllib.parse import quote, urlencode

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.openapi.params import Query
from aws_lambda_powertools.event_handler.router import APIGatewayRouter
from msgspec import Struct
from msgspec.structs import replace

from sweephand.api.asked import Answer, Asked, answer, asked
from sweephand.api.cursors import decode_cursor, encode_cursor
from sweephand.api.downloads import DOWNLOAD, TICKET_PATTERN
from sweephand.api.runs import found_run
from sweephand.api.schemas import CURSOR_PATTERN, TASK_PATTERN, InPath, Limit, says
from sweephand.api.shapes import moment, page
from sweephand.artifacts import NAME_CHARS_MAX
from sweephand.domain.ids import RunId, RunKey
from sweephand.domain.run import Run, RunState
from sweephand.engine.overview import overview_of
from sweephand.errors import InvalidInput, NotFound
from sweephand.logs import Line, LogKey, LogPage, Logs
from sweephand.ports import World

router: Final = APIGatewayRouter()  # type: ignore[no-untyped-call]

ATTEMPTS_MAX: Final = 10_000
_ATTEMPTS_LISTED: Final = 10
"""Attempts whose files are listed: the newest."""
_TASKS_READ: Final = 1_000
"""Tasks whose logs and files are gone through where none is named."""
_NAMES_SHOWN: Final = 10
_CLOSED: Final = "closed"
_STILL_ENDING: Final = timedelta(seconds=10)
"""How long a cancelled run's processes may take to end, and go on printing."""


@router.get(
    "/jobs/<job>/runs/<run>/logs",
    **says("readLogs", "Read what a run's attempts printed, oldest first", {200: "LogLines"}, tag="runs"),
)
def read_logs(
    job: InPath,
    run: InPath,
    task: Annotated[str | None, Query(pattern=TASK_PATTERN)] = None,
    attempt: Annotated[int | None, Query(ge=1, le=ATTEMPTS_MAX)] = None,
    after: Annotated[str | None, Query(pattern=CURSOR_PATTERN)] = None,
    tail: Annotated[int | None, Query(ge=1, le=1000)] = None,
    limit: Limit = 1000,
) -> Answer:
    """All attempts in order, or one. The run is read before its log: what it printed before it ended is there then."""
    ask = asked()
    found = found_run(ask, job, run)
    bound_to = ("logs", found.key, task, attempt)
    position = decode_cursor(after, bound_to, length=4, path="after")
    if tail is not None and position is not None:
        raise InvalidInput("'tail' begins anew: leave 'after' out, or 'tail'.", "tail")
    keys = _keys(ask.world, found, task, attempt, is_whole=False)
    own = overview_of(ask.world, found).found(task).run if task is not None else found
    logs = ask.world.logs
    read = _tail(logs, keys, tail) if tail is not None else _from(logs, keys, position, limit)
    ended = _has_ended(own or found, read, logs.lag, attempt, now=ask.now)
    place = read.key or (keys[0] if keys else LogKey(found.key, task or "", attempt or 1))
    where = [place.task, str(place.attempt), read.page.after, _CLOSED if read.page.closed else ""]
    cursor = None if ended else encode_cursor(where, bound_to)
    cut_off = ended and read.page.begun and not read.page.closed
    truncated = cut_off or any(line.missing for _, line in read.lines)
    items = [_shape(key, line) for key, line in read.lines]
    more = read.page.more or not read.is_last
    return answer(200, {**page(items, cursor), "more": more, "ended": ended, "truncated": truncated})


@router.get(
    "/jobs/<job>/runs/<run>/artifacts",
    **says("listArtifacts", "List the files that a run's attempts left behind", {200: "ArtifactOfRunPage"}, tag="runs"),
)
def list_artifacts(job: InPath, run: InPath, task: Annotated[str | None, Query(pattern=TASK_PATTERN)] = None) -> Answer:
    ask = asked()
    found, kept = found_run(ask, job, run), ask.world.artifacts
    items = []
    for key in _newest(_keys(ask.world, found, task, None)):
        about = {"task": key.task, "attempt": key.attempt}
        for one in kept.listed(key):
            url = kept.url(key, one.name) or _address(ask, key, job, run, one.name)
            items.append({"name": one.name, "size": one.size, **about, "url": url})
    return answer(200, page(items, None))


@router.get(
    "/jobs/<job>/runs/<run>/artifacts/file",
    **says("readArtifact", "Fetch a file that an attempt left behind", {200: None}, tag="runs"),
)
def read_artifact(
    job: InPath,
    run: InPath,
    task: Annotated[str, Query(pattern=TASK_PATTERN)],
    attempt: Annotated[int, Query(ge=1, le=ATTEMPTS_MAX)],
    name: Annotated[str, Query(min_length=1, max_length=NAME_CHARS_MAX)],
) -> Answer:
    ask = asked()
    (key,) = _keys(ask.world, found_run(ask, job, run), task, attempt)
    return _file(ask, key, name)


@router.get(
    DOWNLOAD, **says("download", "Fetch a file by the address that it was given", {200: None}, tag="runs", public=True)
)
def download(ticket: Annotated[str, Query(pattern=TICKET_PATTERN)]) -> Answer:
    """Whoever was given the address may have the file, as long as it is one; nothing else is asked."""
    ask = asked()
    if ask.downloads is None:
        raise NotFound("Files are not fetched here: the list of artifacts says where.")
    return _file(ask, *ask.downloads.opened(ticket, now=ask.now))


def _file(ask: Asked, key: LogKey, name: str) -> Answer:
    content = ask.world.artifacts.read(key, name)
    if content is None:
        raise NotFound(f"Attempt {key.attempt} of run {key.run} left no such file behind.")
    # Never shown by a browser as what it may claim to be: it is somebody else's.
    saved_as = quote(name.rpartition("/")[2], safe="")
    headers: dict[str, str | list[str]] = {
        "Content-Disposition": f"attachment; filename*=UTF-8''{saved_as}",
        "X-Content-Type-Options": "nosniff",
    }
    fetched = Response(200, "application/octet-stream", b64encode(content).decode(), headers=headers)
    fetched.base64_encoded = True
    return fetched


def _newest(keys: Sequence[LogKey]) -> list[LogKey]:
    """The last few attempts of each task."""
    last: dict[str, int] = {}
    for key in keys:
        last[key.task] = max(last.get(key.task, 0), key.attempt)
    return [key for key in keys if key.attempt > last[key.task] - _ATTEMPTS_LISTED]


def _address(ask: Asked, key: LogKey, job: str, run: str, name: str) -> str:
    """Of a file that only the API serves; where nobody signs addresses, it takes the caller's token."""
    if ask.downloads is not None:
        return ask.downloads.address(key, name, now=ask.now)
    query = urlencode({"task": key.task, "attempt": key.attempt, "name": name})
    return f"/api/v1/jobs/{job}/runs/{run}/artifacts/file?{query}"


class _Read(Struct, frozen=True):
    """Lines of some logs in their order, and where the last of these logs was left."""

    lines: list[tuple[LogKey, Line]]
    key: LogKey | None = None
    page: LogPage = LogPage([], "")
    is_last: bool = True
    """Whether it is the newest attempt's."""


def _keys(world: World, run: Run, task: str | None, attempt: int | None, *, is_whole: bool = True) -> list[LogKey]:
    """The logs that are asked for, oldest first. What a rerun took over is read where it was done."""
    seen = overview_of(world, run)
    if task is not None:
        names = [seen.found(task).name]
    elif not seen.is_dag:
        names = list(seen.names())
    elif is_whole or run.is_terminal:
        names = list(islice(seen.names(), _TASKS_READ))
    else:
        shown = ", ".join(list(islice(seen.graph.places, _NAMES_SHOWN)))
        raise InvalidInput(f"The run has several tasks and goes on: name one of them, such as {shown}.", "task")
    begun = [one for one in seen.seen(names) if one.run is not None]
    begun.sort(key=lambda one: (one.run is not None and one.run.started_at) or run.created_at)
    keys = [key for one in begun if one.run is not None for key in _attempts(one.name, one.run, attempt)]
    if attempt is not None and not keys:
        raise NotFound(f"Run {run.key} has no attempt {attempt}.")
    return keys


def _attempts(task: str, run: Run, attempt: int | None) -> list[LogKey]:
    # A task that waits to look again has begun an attempt that does not count yet.
    newest = run.attempt + (1 if run.epoch > run.attempt and not run.is_terminal else 0)
    if attempt is not None and attempt > newest:
        return []
    where = RunKey(run.key.job, RunId(run.rerun_of)) if run.key.task and run.rerun_of else run.key.whole
    return [LogKey(where, task, number) for number in ([attempt] if attempt else range(1, newest + 1))]


def _from(logs: Logs, keys: Sequence[LogKey], position: list[Any] | None, limit: int) -> _Read:
    """From a place in one of the logs, or from the beginning of the first."""
    read = _Read([])
    begin, after, closed = 0, None, False
    at = [number for number, key in enumerate(keys) if position and [key.task, str(key.attempt)] == position[:2]]
    if position is not None and at:
        begin, after, closed = at[0], position[2], position[3] == _CLOSED
    for number, key in enumerate(keys[begin:], begin + 1):
        found = logs.read(key, after=after, limit=limit - len(read.lines))
        if closed and not found.lines:
            found = replace(found, closed=True)
        lines = [*read.lines, *((key, line) for line in found.lines)]
        read = _Read(lines, key, found, number == len(keys))
        if found.more or len(lines) >= limit:
            break
        after, closed = None, False
    return read


def _tail(logs: Logs, keys: Sequence[LogKey], count: int) -> _Read:
    """The last lines, of as many attempts as it takes."""
    read = _Read([])
    for key in reversed(keys):
        found = logs.tail(key, limit=count - len(read.lines))
        lines = [*((key, line) for line in found.lines), *read.lines]
        read = _Read(lines, read.key or key, read.page if read.key else found)
        if len(lines) >= count:
            break
    return read


def _has_ended(run: Run, read: _Read, lag: timedelta, attempt: int | None, *, now: datetime) -> bool:
    """Whether no more will come."""
    if read.page.more or not read.is_last:
        return False
    if attempt is not None and attempt < run.attempt:
        return True
    if not run.is_terminal or run.ended_at is None:
        return False
    if read.page.closed or not run.attempt:
        return True
    still = _STILL_ENDING if run.state is RunState.CANCELLED else timedelta(0)
    return now >= run.ended_at + lag + still


def _shape(key: LogKey, line: Line) -> dict[str, Any]:
    return {
        "at": moment(line.at),
        "stream": str(line.stream),
        "text": line.text,
        "task": key.task,
        "attempt": key.attempt,
    }
