"""The client against a server that answers what the test says: errors, repeats, and what is sent."""

from __future__ import annotations

import json
import subprocess
import sys
from base64 import b64encode
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any

import pytest

import sweephand
from sweephand import Client
from sweephand.errors import (
    Conflict,
    Defect,
    InvalidInput,
    NotFound,
    Refused,
    SweephandError,
    TooMany,
    Unavailable,
)
from sweephand.testing import SeededDice
from tests.cli.scripted import Answer, Scripted, scripted

MOMENT = timedelta(milliseconds=100)
OK = Answer(200, {"jobId": "a"})


def client_of(script: Scripted, waits: list[float] | None = None, **more: Any) -> Client:
    kept = [] if waits is None else waits
    return Client(script.url, "hush", dice=SeededDice(7), wait=kept.append, **more)


SMALL, LARGE = b"x" * 10, b"x" * (3 * 1024 * 1024 + 1)
KEPT = Answer(200, {"sha256": "0" * 64, "size": 1})
ABSENT = Answer(404, {"detail": "There is no code."})


def asked(script: Scripted) -> list[str]:
    return [f"{one.method} {one.path.rpartition('/')[2][:6]}" for one in script.questions]


def test_code_that_is_there_is_not_sent() -> None:
    with scripted(KEPT) as script, client_of(script) as client:
        assert client.code.put(SMALL)["size"] == 1
    assert asked(script) == [f"GET {sha256(SMALL).hexdigest()[:6]}"]


def test_small_code_goes_into_a_call() -> None:
    with scripted(ABSENT, KEPT) as script, client_of(script) as client:
        client.code.put(SMALL)
    assert json.loads(script.questions[1].body) == {"content": b64encode(SMALL).decode()}


def test_large_code_goes_where_the_server_says_and_without_the_token() -> None:
    with scripted(KEPT) as bucket, scripted(ABSENT, KEPT) as script, client_of(script) as client:
        upload = {"url": f"{bucket.url}/code.zip?signed", "headers": {"x-amz-checksum-sha256": "abc"}}
        script.answers = [ABSENT, Answer(200, upload), KEPT]
        bucket.answers = [Answer(503), Answer(200)]
        client.code.put(LARGE)
    assert [(one.method, one.path, len(one.body)) for one in bucket.questions] == [
        ("PUT", "/code.zip?signed", len(LARGE))
    ] * 2
    sent = bucket.questions[0].headers
    assert (sent["x-amz-checksum-sha256"], sent["content-length"]) == ("abc", str(len(LARGE)))
    assert "authorization" not in sent
    assert asked(script)[1] == "POST upload"


def test_large_code_goes_into_a_call_where_there_is_no_other_way() -> None:
    with scripted(ABSENT, Answer(200, {"url": None, "headers": {}}), KEPT) as script, client_of(script) as client:
        client.code.put(LARGE)
    assert asked(script)[2].startswith("PUT ")


def test_an_upload_that_is_refused_is_told_and_not_repeated() -> None:
    with scripted(Answer(403, b"<Error>no</Error>")) as bucket, scripted(ABSENT) as script, client_of(script) as client:
        script.answers = [ABSENT, Answer(200, {"url": bucket.url, "headers": {}})]
        with pytest.raises(InvalidInput, match="403: <Error>no"):
            client.code.put(LARGE)
    assert len(bucket.questions) == 1


def test_a_delete_can_be_of_one_version_only() -> None:
    with scripted(Answer(204)) as script, client_of(script) as client:
        client.delete("a")
        client.delete("a", version=3)
    assert [one.headers.get("if-match") for one in script.questions] == [None, "3"]


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, InvalidInput),
        (401, Refused),
        (403, Refused),
        (404, NotFound),
        (405, InvalidInput),
        (409, Conflict),
        (412, Conflict),
        (413, InvalidInput),
        (415, InvalidInput),
        (428, Conflict),
        (429, TooMany),
        (500, Defect),
        (502, Unavailable),
        (503, Unavailable),
        (504, Unavailable),
    ],
)
def test_a_problem_becomes_the_exception_of_its_status(status: int, kind: type[SweephandError]) -> None:
    with (
        scripted(Answer(status, {"detail": "So it is."})) as script,
        client_of(script) as client,
        pytest.raises(kind, match="So it is") as raised,
    ):
        client.get("a")
    assert type(raised.value) in {kind, *kind.__subclasses__()}


def test_bad_input_names_its_fields() -> None:
    problem = {"detail": "Two are wrong.", "errors": [{"path": "a.b", "message": "No."}, {"path": "c", "message": "N"}]}
    with scripted(Answer(400, problem)) as script, client_of(script) as client, pytest.raises(InvalidInput) as raised:
        client.create({"name": "a"})
    assert raised.value.errors == (("a.b", "No."), ("c", "N"))


def test_a_limit_says_when_to_come_back_and_is_obeyed() -> None:
    waits: list[float] = []
    limit = Answer(429, {"detail": "Slow down."}, {"Retry-After": "7"})
    with scripted(limit, OK) as script, client_of(script, waits) as client:
        assert client.get("a") == {"jobId": "a"}
    assert waits == [7.0]


def test_a_limit_that_lasts_too_long_is_reported_at_once() -> None:
    waits: list[float] = []
    limit = Answer(429, {"detail": "Slow down."}, {"Retry-After": "3600"})
    with scripted(limit) as script, client_of(script, waits) as client, pytest.raises(TooMany) as raised:
        client.get("a")
    assert raised.value.retry_after_s == 3600
    assert waits == []


def test_an_unavailable_server_may_say_when_it_is_back() -> None:
    waits: list[float] = []
    with scripted(Answer(503, {}, {"Retry-After": "2"}), OK) as script, client_of(script, waits) as client:
        client.get("a")
    assert waits == [2.0]


def test_a_lost_answer_is_asked_for_again_under_the_same_key() -> None:
    waits: list[float] = []
    with scripted(Answer(None), Answer(503), OK) as script, client_of(script, waits) as client:
        client.trigger("a")
        client.trigger("a")
    first, second, third, fresh = (question.headers["idempotency-key"] for question in script.questions)
    assert first == second == third != fresh
    assert len(first) == 32
    assert 0.1 <= waits[0] <= 0.2 <= waits[1] <= 0.4


def test_it_gives_up_after_a_few_tries() -> None:
    with (
        scripted(Answer(503, {"detail": "Not now."})) as script,
        client_of(script) as client,
        pytest.raises(Unavailable, match="Not now"),
    ):
        client.get("a")
    assert len(script.questions) == 4


@pytest.mark.parametrize("status", [400, 401, 404, 409, 412, 500])
def test_what_would_be_refused_again_is_asked_once(status: int) -> None:
    with scripted(Answer(status, {})) as script, client_of(script) as client, pytest.raises(SweephandError):
        client.get("a")
    assert len(script.questions) == 1


def test_nobody_there_says_how_to_start_it() -> None:
    with scripted(OK) as script:
        pass
    with client_of(script) as client, pytest.raises(Unavailable, match="start it with `sweephand up`"):
        client.get("a")


def test_a_missing_token_says_how_to_get_one() -> None:
    with (
        scripted(Answer(401, {"detail": "A token is needed."})) as script,
        Client(script.url) as client,
        pytest.raises(Refused, match="sweephand login"),
    ):
        client.get("a")


@pytest.mark.parametrize("answer", [Answer(200, b"<html>"), Answer(200, [1]), Answer(200, {"item": []})])
def test_another_kind_of_server_is_recognised(answer: Answer) -> None:
    with (
        scripted(answer) as script,
        client_of(script) as client,
        pytest.raises(InvalidInput, match="does not answer as Sweephand does"),
    ):
        list(client.jobs())


def test_a_redirect_is_not_followed_with_the_token() -> None:
    elsewhere = pytest.raises(InvalidInput, match="points elsewhere")
    with scripted(OK) as other, scripted(Answer(307, {}, {"Location": other.url})) as script:
        client = client_of(script)
        with client, elsewhere:
            client.get("a")
    assert not other.questions


def test_a_proxy_never_sees_what_goes_to_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    with scripted(OK) as proxy, scripted(OK) as script:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
            monkeypatch.setenv(name, proxy.url)
        with client_of(script) as client:
            client.get("a")
    assert not proxy.questions
    assert len(script.questions) == 1


def test_a_list_goes_on_to_its_last_page_and_reads_no_further_than_it_must() -> None:
    pages = [{"items": [{"n": 1}, {"n": 2}], "nextCursor": "x y"}, {"items": [{"n": 3}], "nextCursor": None}]
    with scripted(*(Answer(200, page) for page in pages)) as script, client_of(script) as client:
        jobs = client.jobs(tag="a&b", prefix=None)
        assert next(jobs) == {"n": 1}
        assert len(script.questions) == 1
        assert [*jobs] == [{"n": 2}, {"n": 3}]
    assert [question.path for question in script.questions] == [
        "/api/v1/jobs?tag=a%26b",
        "/api/v1/jobs?tag=a%26b&cursor=x+y",
    ]


def test_the_token_the_namespace_and_the_version_go_in_headers() -> None:
    with scripted(OK) as script, client_of(script, namespace="team") as client:
        client.put({"name": "a"}, version=3)
        client.put({"name": "a"})
        client.get("a")
    changed, created, read = (question.headers for question in script.questions)
    assert changed["authorization"] == "Bearer hush"
    assert changed["x-namespace"] == "team"
    assert changed["if-match"] == "3"
    assert created["if-none-match"] == "*"
    assert "idempotency-key" not in read


@pytest.mark.parametrize("name", ["", ".", "..", "..."])
def test_no_name_leaves_its_place_in_the_path(name: str) -> None:
    with scripted(OK) as script, client_of(script) as client:
        client.get("../tokens?x=1#y")
        with pytest.raises(InvalidInput, match="is no name"):
            client.delete(name)
    assert [question.path for question in script.questions] == ["/api/v1/jobs/..%2Ftokens%3Fx%3D1%23y"]


def test_times_are_sent_in_utc() -> None:
    with scripted(Answer(200, {"items": []})) as script, client_of(script) as client:
        list(client.ledger("a", start=datetime(2026, 1, 1, tzinfo=UTC)))
    assert "from=2026-01-01T00%3A00%3A00Z" in script.questions[0].path


def test_a_namespace_is_paused_page_by_page() -> None:
    pages = [{"changed": 200, "nextCursor": "c"}, {"changed": 3, "nextCursor": None}]
    with scripted(*(Answer(200, page) for page in pages)) as script, client_of(script) as client:
        assert sum(page["changed"] for page in client.namespaces.pause("team")) == 203
    assert [json.loads(question.body) for question in script.questions] == [{}, {"cursor": "c"}]


def test_the_server_may_hold_a_question_for_work_longer_than_the_time_out() -> None:
    with scripted(Answer(200, {"items": [{"lease": "l"}]})) as script, client_of(script, timeout=MOMENT) as client:
        assert client.leases.lease("w", labels=["q"], max_=2, wait_s=5) == [{"lease": "l"}]
    body = {"workerId": "w", "labels": ["q"], "max": 2, "waitSeconds": 5}
    assert json.loads(script.questions[0].body) == body


def test_where_the_server_keeps_nobody_waiting_the_client_asks_again_when_it_is_told_to() -> None:
    nothing, waits = Answer(200, {"items": [], "retryAfterSeconds": 2}), list[float]()
    with scripted(nothing, nothing, Answer(200, {"items": [{"lease": "l"}]})) as script:
        with client_of(script, waits) as client:
            assert client.leases.lease("w", wait_s=5) == [{"lease": "l"}]
        assert [json.loads(question.body)["waitSeconds"] for question in script.questions] == [5, 3, 1]
    assert waits == [2, 2]
    with scripted(nothing) as script, client_of(script, waits) as client:
        assert client.leases.lease("w", wait_s=5) == []
        assert client.leases.lease("w") == []
    assert len(script.questions) == 4


def test_the_package_exports_the_client_and_imports_it_late() -> None:
    within = {"checkpoint", "output", "progress", "save_checkpoint"}
    job_files = {"group", "index", "item", "job", "params", "run", "step", "task"}
    assert sweephand.__all__ == sorted({"Client", "__version__"} | within | job_files)
    assert sweephand.Client is Client
    code = "import sys, sweephand; sys.exit('httpx' in sys.modules or 'click' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    with pytest.raises(AttributeError, match="no attribute 'Server'"):
        _ = sweephand.Server
