"""What runs printed, through the API: in order, followable, to the end, and nobody else's."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

from msgspec.structs import replace

from sweephand.artifacts import left_behind
from sweephand.calls import Call
from sweephand.domain.ids import JobKey, JobName, Namespace, RunId, RunKey
from sweephand.domain.output import Kept
from sweephand.logs import Line, LogKey, Stream
from tests.api.client import Client, Virtual


def key_of(run: str, *, job: str = "job", attempt: int = 1) -> LogKey:
    return LogKey(RunKey(JobKey(Namespace("default"), JobName(job)), RunId(run)), "main", attempt)


def say(place: Virtual, run: str, *texts: str, attempt: int = 1, job: str = "job", close: bool = False) -> None:
    """Write to an attempt's log, as its task would."""
    log = place.world.logs.open(key_of(run, job=job, attempt=attempt))
    log.append([Line(place.now, Stream.STDOUT, text) for text in texts])
    if close:
        log.close(place.now)


def begun(place: Virtual, job: str = "job", **more: Any) -> str:
    """A run of a new job, which takes half an hour."""
    place.admin.post("/jobs", {"name": job, "command": "x", **more}).expect(201)
    place.on(job, takes="30m")
    run: str = place.admin.post(f"/jobs/{job}/trigger").expect(202).json["runId"]
    place.go_on(seconds=10)
    return run


def read(client: Client, run: str, query: str = "", *, job: str = "job") -> Any:
    return client.get(f"/jobs/{job}/runs/{run}/logs{query}").expect(200).json


def texts(page: Any) -> list[str]:
    return [line["text"] for line in page["items"]]


def test_lines_are_read_as_they_come_and_to_the_end(virtual: Virtual) -> None:
    run = begun(virtual)
    page = read(virtual.admin, run)
    assert (page["items"], page["ended"]) == ([], False)
    say(virtual, run, "one", "\x1b[31m<script>", "")
    page = read(virtual.admin, run, f"?after={page['nextCursor']}")
    at = virtual.now.isoformat().replace("+00:00", "Z")
    about = {"at": at, "stream": "stdout", "task": "main", "attempt": 1}
    assert page["items"] == [{**about, "text": text} for text in ("one", "\x1b[31m<script>", "")]
    again = read(virtual.admin, run, f"?after={page['nextCursor']}")
    assert (again["items"], again["ended"], again["truncated"]) == ([], False, False)
    say(virtual, run, "two", close=True)
    last = read(virtual.admin, run, f"?after={again['nextCursor']}")
    assert (texts(last), last["ended"]) == (["two"], False)  # it may still be tried again
    virtual.go_on(minutes=30)
    end = read(virtual.admin, run, f"?after={last['nextCursor']}")
    assert (end["items"], end["ended"], end["nextCursor"], end["truncated"]) == ([], True, None, False)
    whole = read(virtual.admin, run)
    assert (texts(whole), whole["ended"]) == (["one", "\x1b[31m<script>", "", "two"], True)


def test_attempts_follow_each_other_or_are_read_one_by_one(virtual: Virtual) -> None:
    virtual.admin.post("/jobs", {"name": "job", "command": "x", "retry": {"attempts": 2, "delays": ["1m"]}}).expect(201)
    virtual.on("job", fails)
    run = virtual.admin.post("/jobs/job/trigger").expect(202).json["runId"]
    virtual.go_on(minutes=5)
    found = virtual.admin.get(f"/jobs/job/runs/{run}").expect(200).json
    assert (found["state"], found["attempt"]) == ("failed", 2)
    say(virtual, run, "a", "b", attempt=1, close=True)
    say(virtual, run, "c", "d", attempt=2, close=True)
    page = read(virtual.admin, run)
    assert [(line["text"], line["attempt"]) for line in page["items"]] == [("a", 1), ("b", 1), ("c", 2), ("d", 2)]
    assert page["ended"] is True
    assert texts(read(virtual.admin, run, "?attempt=1")) == ["a", "b"]
    assert texts(read(virtual.admin, run, "?attempt=2&task=main")) == ["c", "d"]
    assert texts(read(virtual.admin, run, "?tail=3")) == ["b", "c", "d"]
    seen, cursor = [], None
    for _ in range(4):
        page = read(virtual.admin, run, "?limit=1" + (f"&after={cursor}" if cursor else ""))
        seen += texts(page)
        cursor = page["nextCursor"]
    assert seen == ["a", "b", "c", "d"]


def test_the_last_lines_can_be_followed(virtual: Virtual) -> None:
    run = begun(virtual)
    say(virtual, run, "one", "two", "three")
    page = read(virtual.admin, run, "?tail=2")
    assert (texts(page), page["ended"]) == (["two", "three"], False)
    say(virtual, run, "four")
    assert texts(read(virtual.admin, run, f"?after={page['nextCursor']}")) == ["four"]


def test_a_run_that_never_began_has_nothing_to_say_and_one_that_waits_can_be_followed(virtual: Virtual) -> None:
    virtual.admin.post("/jobs", {"name": "job", "command": "x"}).expect(201)
    run = virtual.admin.post("/jobs/job/trigger").expect(202).json["runId"]
    page = read(virtual.admin, run)
    assert (page["items"], page["ended"]) == ([], False)
    virtual.on("job", takes="30m")
    virtual.go_on(seconds=10)
    say(virtual, run, "hello")
    assert texts(read(virtual.admin, run, f"?after={page['nextCursor']}")) == ["hello"]
    cancelled = virtual.admin.post("/jobs/job/trigger").expect(202).json["runId"]
    virtual.admin.post(f"/jobs/job/runs/{cancelled}/cancel").expect(200)
    page = read(virtual.admin, cancelled)
    assert (page["items"], page["ended"], page["truncated"]) == ([], True, False)


def test_a_log_whose_writer_died_is_cut_off_and_says_so(virtual: Virtual) -> None:
    run = begun(virtual)
    say(virtual, run, "at it")
    virtual.admin.post(f"/jobs/job/runs/{run}/cancel").expect(200)
    page = read(virtual.admin, run)
    assert (texts(page), page["ended"]) == (["at it"], False)  # its process may still say something
    virtual.jump(seconds=30)
    page = read(virtual.admin, run)
    assert (texts(page), page["ended"], page["truncated"]) == (["at it"], True, True)


def test_a_log_with_a_gap_says_so(virtual: Virtual) -> None:
    run = begun(virtual)
    log = virtual.world.logs.open(key_of(run))
    log.append([Line(virtual.now, Stream.STDOUT, "hello")])
    log.close(virtual.now, lost=2)
    page = read(virtual.admin, run)
    assert (texts(page), page["truncated"]) == (["hello", "… 2 lines are missing here …"], True)
    assert page["items"][1]["stream"] == "system"


def test_what_is_asked_for_must_be_there(virtual: Virtual) -> None:
    run = begun(virtual)
    page = read(virtual.admin, run)
    get = virtual.admin.get
    assert get("/jobs/job/runs/20260101T000000Z/logs").status == 404
    assert get("/jobs/nobody/runs/20260101T000000Z/logs").status == 404
    assert get(f"/jobs/job/runs/{run}/logs?task=other").status == 404
    assert get(f"/jobs/job/runs/{run}/logs?attempt=2").status == 404
    for query in ("attempt=0", "tail=0", "tail=1001", "limit=0", "after=x", f"attempt=1&after={page['nextCursor']}"):
        get(f"/jobs/job/runs/{run}/logs?{query}").expect(400)
    refused = get(f"/jobs/job/runs/{run}/logs?tail=1&after={page['nextCursor']}").expect(400).json
    assert refused["errors"][0]["path"] == "tail"


def test_another_namespaces_log_is_absent_and_a_viewer_reads_their_own(virtual: Virtual) -> None:
    run = begun(virtual)
    say(virtual, run, "hello")
    virtual.admin.put("/namespaces/team", {}).expect(201)
    path = f"/jobs/job/runs/{run}/logs"
    theirs = virtual.callers.role("admin", "team").get(path)
    absent = virtual.callers.role("admin", "team").get("/jobs/job/runs/20260101T000000Z/logs")
    assert theirs.status == absent.status == 404
    assert theirs.json["detail"].replace(run, "") == absent.json["detail"].replace("20260101T000000Z", "")
    assert texts(virtual.callers.role("viewer").get(path).expect(200).json) == ["hello"]
    assert virtual.callers.nobody().get(path).status == 401


def fails(_call: Call) -> None:
    raise RuntimeError("it does not work")


def test_a_cursor_of_one_run_opens_no_other(virtual: Virtual) -> None:
    run, other = begun(virtual), begun(virtual, "other")
    say(virtual, run, "hello")
    cursor = read(virtual.admin, run)["nextCursor"]
    virtual.admin.get(f"/jobs/other/runs/{other}/logs?after={cursor}").expect(400)


def test_what_attempts_left_behind_is_listed_with_where_to_fetch_it(virtual: Virtual, tmp_path: Path) -> None:
    run = begun(virtual)
    path = f"/jobs/job/runs/{run}/artifacts"
    assert virtual.admin.get(path).expect(200).json == {"items": [], "nextCursor": None}
    left = tmp_path / "left"
    left.mkdir()
    (left / "a b.html").write_text("<script>")
    virtual.world.artifacts.keep(key_of(run), left_behind(left)[0])
    (found,) = virtual.callers.role("viewer").get(path).expect(200).items
    address = found.pop("url")
    assert found == {"name": "a b.html", "size": 8, "task": "main", "attempt": 1}
    if address.startswith("https://"):
        assert "X-Amz-Signature=" in address
        return
    fetched = virtual.admin.get(address.removeprefix("/api/v1")).expect(200)
    assert fetched.text == base64.b64encode(b"<script>").decode()  # as API Gateway carries bytes
    assert fetched.headers["content-type"] == "application/octet-stream"
    assert fetched.headers["content-disposition"] == "attachment; filename*=UTF-8''a%20b.html"
    assert urlparse(address).query == "task=main&attempt=1&name=a+b.html"
    theirs = virtual.callers.role("admin", "team")
    virtual.admin.put("/namespaces/team", {}).expect(201)
    assert theirs.get(path).status == theirs.get(address.removeprefix("/api/v1")).status == 404
    assert virtual.callers.nobody().get(address.removeprefix("/api/v1")).status == 401
    for query in ("name=../a", "name=nothing", "name=a+b.html&attempt=2", "name=a+b.html&task=x"):
        wanted = {"task": "main", "attempt": "1"} | dict(part.split("=") for part in query.split("&"))
        asked = "&".join(f"{name}={value}" for name, value in wanted.items())
        assert virtual.admin.get(f"{path}/file?{asked}").status == 404


def test_an_output_that_is_kept_in_a_file_is_shown_as_any_other(virtual: Virtual) -> None:
    run = begun(virtual)
    virtual.go_on(minutes=31)
    found = virtual.world.runs.get(key_of(run).run)
    assert found is not None
    virtual.world.artifacts.keep_output(key_of(run), b'{"rows": 3}')
    after = replace(found, output=Kept(run, "main", 1, 11), rev=found.rev + 1, nonce="by hand")
    assert virtual.world.runs.move(found, after)
    shown = virtual.admin.get(f"/jobs/job/runs/{run}").expect(200).json
    assert (shown["output"], shown["tasks"][0]["output"]) == ({"rows": 3}, {"rows": 3})
    (listed,) = virtual.admin.get("/jobs/job/runs").expect(200).items
    assert (listed["runId"], listed["output"]) == (run, None)
