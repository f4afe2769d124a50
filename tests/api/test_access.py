"""Who may do what: every call in every role, other namespaces' things, and tokens that are none."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Iterator, Mapping
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from sweephand.api.access import LEAST_ROLE, PLATFORM_CALLS, PUBLIC_CALLS
from sweephand.api.app import document_alone
from sweephand.clock import SystemClock
from tests.api.client import ISSUER, Answered, Client, Served, Virtual, VirtualEmbedded, answered, issuer_key
from tests.api.test_contract import create

CLOCK = SystemClock()
ROLES = ("viewer", "operator", "editor", "admin")
SAMPLE_PATH = {
    "job": "no-job",
    "run": "20260101T000000Z",
    "task": "main",
    "dag": "no-job",
    "backfill": "nothing",
    "lease": "bm8",
    "id": "nothing",
    "letter": "no-job:20260101T000000Z",
    "dataset": "nothing",
    "ns": "default",
    "member": "nobody",
    "token": "0123456789abcdef",
    "sha256": "0" * 64,
}
SAMPLE_BODY: Mapping[str, Any] = {
    "pauseNamespace": {},
    "resumeNamespace": {},
    "changeRuns": {"action": "cancel", "filter": {}, "dryRun": True},
    "beatMany": {"leases": [{"lease": "bm8", "epoch": 1}]},
    "leaseWork": {"workerId": "w"},
    "markTask": {"state": "skipped"},
    "openUpload": {"size": 1},
}

EXPECTED: Mapping[str, str] = {
    # Written out by hand: a table that is wrong must not agree with itself.
    "listJobs": "viewer",
    "getJob": "viewer",
    "getLedger": "viewer",
    "listLedgerDays": "viewer",
    "planJob": "viewer",
    "explainRun": "viewer",
    "listUpcoming": "viewer",
    "listAudit": "viewer",
    "getStats": "viewer",
    "openSession": "viewer",
    "getSession": "viewer",
    "listDatasets": "viewer",
    "getDataset": "viewer",
    "listFiles": "viewer",
    "updateDataset": "operator",
    "pauseJob": "operator",
    "resumeJob": "operator",
    "triggerJob": "operator",
    "cancelRun": "operator",
    "rerunRun": "operator",
    "markTask": "operator",
    "cancelTask": "operator",
    "retryTask": "operator",
    "approveTask": "viewer",
    "rejectTask": "viewer",
    "createBackfill": "operator",
    "pauseBackfill": "operator",
    "resumeBackfill": "operator",
    "cancelBackfill": "operator",
    "listBackfills": "viewer",
    "getBackfill": "viewer",
    "changeRuns": "operator",
    "startDagRun": "operator",
    "leaseWork": "operator",
    "beat": "operator",
    "completeWork": "operator",
    "failWork": "operator",
    "publishEvent": "operator",
    "redriveDeadLetter": "operator",
    "redriveDeadLetters": "operator",
    "getDeadLetter": "viewer",
    "createJob": "editor",
    "putJob": "editor",
    "deleteJob": "editor",
    "rollbackJob": "editor",
    "createDag": "editor",
    "putCalendar": "editor",
    "deleteCalendar": "editor",
    "putPool": "editor",
    "deletePool": "editor",
    "putTemplate": "editor",
    "deleteTemplate": "editor",
    "getCodeTarget": "viewer",
    "getCode": "viewer",
    "putCode": "editor",
    "openUpload": "editor",
    "listMembers": "admin",
    "putMember": "admin",
    "removeMember": "admin",
    "listTokens": "admin",
    "issueToken": "admin",
    "revokeToken": "admin",
    "pauseNamespace": "admin",
    "resumeNamespace": "admin",
    "putNamespace": "platform",
    "deleteNamespace": "platform",
    "getHealth": "nobody",
}

Operation = tuple[str, str, str]
"""Method, path and name."""


@pytest.fixture(scope="module")
def place() -> Iterator[Virtual]:
    with VirtualEmbedded() as virtual:
        yield virtual


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with Served(tmp_path_factory.mktemp("access")) as served:
        yield served


def operations() -> list[Operation]:
    """Every call of the OpenAPI document, about things that are not there."""
    paths: Mapping[str, Mapping[str, Any]] = document_alone()["paths"]
    return [
        (method.upper(), path.format(**SAMPLE_PATH), str(operation["operationId"]))
        for path, methods in paths.items()
        for method, operation in methods.items()
    ]


def made(client: Client, operation: Operation) -> Answered:
    method, path, call = operation
    body = SAMPLE_BODY.get(call, {})
    return client.call(method, path) if method == "GET" else client.call(method, path, body)


# The table.


def test_the_table_names_every_call_and_nothing_else(place: Virtual) -> None:
    calls = {call for _, _, call in operations()}
    assert calls - PUBLIC_CALLS <= LEAST_ROLE.keys()
    hidden = {"getKeys", "download"}
    assert (LEAST_ROLE.keys() | PUBLIC_CALLS) - calls <= hidden
    assert EXPECTED.keys() <= calls
    assert not PUBLIC_CALLS - {"getHealth", "getKeys", "download"}


def test_every_call_without_a_token_is_refused(place: Virtual) -> None:
    nobody = place.callers.nobody()
    for operation in operations():
        method, path, call = operation
        status = made(nobody, operation).status
        assert status == (200 if call in PUBLIC_CALLS else 401), operation
        # Even one that came past the authorizer.
        event: dict[str, Any] = {
            "httpMethod": method,
            "path": f"/v1{path}",
            "headers": {},
            "requestContext": {},
            "body": None,
        }
        assert answered(place.api.handle(event)).status == status, operation


@pytest.mark.parametrize("role", [*ROLES, "platform"])
def test_every_call_asks_for_its_role(place: Virtual, role: str) -> None:
    client = place.callers.platform() if role == "platform" else place.callers.role(role)
    rank = [*ROLES, "platform"].index(role)
    for operation in operations():
        call = operation[2]
        if call in PUBLIC_CALLS:
            continue
        needed = "platform" if call in PLATFORM_CALLS else str(LEAST_ROLE[call])
        assert needed == EXPECTED.get(call, needed), call
        status = made(client, operation).status
        if rank < [*ROLES, "platform"].index(needed):
            assert status == 403, (operation, status)
        else:
            assert status not in (401, 403, 429), (operation, status)
            assert status < 500, (operation, status)


def test_no_spelling_of_a_path_comes_past_the_table(place: Virtual) -> None:
    viewer, nobody = place.callers.role("viewer"), place.callers.nobody()
    for path in ("/jobs/", "//jobs", "/JOBS", "/./jobs", "/jobs/../tokens", "/tokens/", "/v1/jobs", ""):
        for method in ("GET", "POST", "OPTIONS", "HEAD", "TRACE"):
            assert nobody.call(method, path).status == 401, (method, path)
            status = viewer.call(method, path).status
            is_list = method == "GET" and path.rstrip("/") == "/jobs"  # the same call, with the same role
            assert status == 200 if is_list else status in (403, 404, 405), (method, path, status)
    spelt = ("/artifacts/file/", "/artifacts/file/x", "/ARTIFACTS/file", "//artifacts/file", "/artifacts")
    for path in ("/health/", "/health/x", "/HEALTH", "//health", "/jwks.json/", *spelt):
        assert nobody.get(path).status == 401, path
    assert nobody.call("POST", "/health", {}).status == 401


# Other namespaces.


@pytest.fixture
def theirs(virtual: Virtual) -> Iterator[dict[str, str]]:
    """What there is in another namespace."""
    virtual.admin.put("/namespaces/other", {}).expect(201)
    other = virtual.admin.within("other")
    create(other, "secret-job", schedule="*/20 * * * *", run={"external": {}})
    run_id = other.post("/jobs/secret-job/trigger").expect(202).json["runId"]
    for path, body in (
        ("calendars/their-c", {}),
        ("pools/their-p", {"slots": 1}),
        ("templates/their-t", {"retries": 1}),
    ):
        other.put(f"/{path}", body).expect(201)
    other.put("/namespaces/other/members/ann", {"role": "viewer"}).expect(201)
    token = other.post("/tokens", {"name": "t", "role": "viewer"}).expect(201).json["id"]
    virtual.go_on(seconds=1)
    (work,) = other.post("/leases", {"workerId": "w"}).expect(200).items
    yield {"run": run_id, "token": token, "lease": work["lease"]}
    assert other.get(f"/jobs/secret-job/runs/{run_id}").expect(200).json["state"] == "running"
    for path in ("/jobs/secret-job", "/calendars/their-c", "/pools/their-p", "/templates/their-t"):
        other.get(path).expect(200)
    assert token in [one["id"] for one in other.get("/tokens").items]
    assert len(other.get("/namespaces/other/members").items) == 1


def test_what_is_in_another_namespace_looks_like_what_is_not_there(virtual: Virtual, theirs: dict[str, str]) -> None:
    mine = virtual.callers.role("admin")
    run, absent_run = theirs["run"], "20200101T000000Z-01234567"
    calls: list[tuple[str, str, Any, str]] = [
        ("GET", "/jobs/{}", None, "secret-job"),
        ("PUT", "/jobs/{}", {"command": "x"}, "secret-job"),
        ("DELETE", "/jobs/{}", None, "secret-job"),
        ("POST", "/jobs/{}/trigger", {}, "secret-job"),
        ("POST", "/jobs/{}/pause", {}, "secret-job"),
        ("GET", "/jobs/{}/runs", None, "secret-job"),
        ("GET", "/jobs/{}/versions", None, "secret-job"),
        ("GET", "/jobs/{}/ledger", None, "secret-job"),
        ("GET", "/jobs/{}/ledger/days", None, "secret-job"),
        ("GET", "/jobs/{}/why", None, "secret-job"),
        ("GET", f"/jobs/{{}}/runs/{run}", None, "secret-job"),
        ("POST", f"/jobs/{{}}/runs/{run}/cancel", {}, "secret-job"),
        ("POST", f"/jobs/{{}}/runs/{run}/rerun", {}, "secret-job"),
        ("GET", f"/jobs/{{}}/runs/{run}/tasks", None, "secret-job"),
        ("GET", f"/jobs/{{}}/runs/{run}/tasks/main/why", None, "secret-job"),
        ("POST", f"/jobs/{{}}/runs/{run}/tasks/main/mark", {"state": "failed"}, "secret-job"),
        ("POST", f"/jobs/{{}}/runs/{run}/tasks/main/cancel", {}, "secret-job"),
        ("POST", f"/jobs/{{}}/runs/{run}/tasks/main/retry", {}, "secret-job"),
        ("POST", f"/jobs/{{}}/runs/{run}/tasks/main/approve", {}, "secret-job"),
        ("POST", f"/jobs/{{}}/runs/{run}/tasks/main/reject", {}, "secret-job"),
        ("POST", f"/deadletters/{{}}:{run}/redrive", {}, "secret-job"),
        ("GET", "/calendars/{}", None, "their-c"),
        ("DELETE", "/calendars/{}", None, "their-c"),
        ("GET", "/pools/{}", None, "their-p"),
        ("DELETE", "/pools/{}", None, "their-p"),
        ("GET", "/templates/{}", None, "their-t"),
        ("DELETE", "/templates/{}", None, "their-t"),
        ("DELETE", "/tokens/{}", None, theirs["token"]),
        ("GET", "/namespaces/{}", None, "other"),
        ("GET", "/namespaces/{}/members", None, "other"),
        ("PUT", "/namespaces/{}/members/me", {"role": "admin"}, "other"),
        ("DELETE", "/namespaces/{}/members/ann", None, "other"),
        ("POST", "/namespaces/{}/pause", {}, "other"),
        ("POST", "/leases/{}/complete", {"epoch": 1}, theirs["lease"]),
        ("POST", "/leases/{}/heartbeat", {"epoch": 1}, theirs["lease"]),
    ]
    for method, path, body, name in calls:
        absent = "0" * 16 if name == theirs["token"] else "bm8" if name == theirs["lease"] else "absent-one"
        headers = {"If-Match": "1"} if method == "PUT" and path.startswith("/jobs") else {}
        there = mine.call(method, path.format(name), body or {}, headers=headers)
        nowhere = mine.call(method, path.format(absent), body or {}, headers=headers)
        assert there.status == nowhere.status, (method, path)
        assert there.status == (412 if headers else 404), (method, path, there.text)
        assert there.text.replace(name, "") == nowhere.text.replace(absent, ""), (method, path)
        assert there.headers == nowhere.headers
    create(mine, "mine", command="x")
    assert mine.get(f"/jobs/mine/runs/{run}").expect(404).text.replace(run, absent_run) == (
        mine.get(f"/jobs/mine/runs/{absent_run}").expect(404).text
    )


def test_lists_show_nothing_of_another_namespace(virtual: Virtual, theirs: dict[str, str]) -> None:
    mine = virtual.callers.role("admin")
    lists = ("calendars", "pools", "templates", "workers", "deadletters", "audit", "upcoming")
    for path in ("/jobs", "/jobs?search=e", "/jobs?include=recentRuns", "/runs", *(f"/{one}" for one in lists)):
        text = mine.get(path).expect(200).text
        assert not [name for name in ("secret-job", "their-", theirs["token"], "other") if name in text], path
    assert [one["namespace"] for one in mine.get("/namespaces").items] == ["default"]
    assert mine.get("/session").expect(200).json["namespaces"] == ["default"]
    assert theirs["token"] not in mine.get("/tokens").text
    assert mine.get("/stats").json["jobs"] == 0
    assert mine.post("/leases", {"workerId": "w", "max": 100}).expect(200).items == []
    assert mine.post("/runs/bulk", {"action": "cancel", "filter": {}}).expect(200).json["matched"] == 0
    assert mine.post("/events", {"source": "s", "type": "t"}).expect(202).json["runs"] == []


def test_asking_for_another_namespace_is_refused_and_written_down(virtual: Virtual) -> None:
    virtual.admin.put("/namespaces/other", {}).expect(201)
    mine = virtual.callers.role("admin")
    for name in ("other", "nowhere", "*", "_sweephand", "default/other", "Default"):
        virtual.jump(seconds=2)
        refused = mine.within(name).get("/jobs").expect(403)
        assert refused.json["detail"] == f"This token may not use namespace {name}."
        row = mine.get("/audit?limit=100").items
        noted = [(one["action"], one["note"]) for one in row]
        assert ("access.refuse", f"asked for {name}") in noted
    mine.within("default").get("/jobs").expect(200)


def test_even_the_platform_cannot_enter_what_is_no_namespace(virtual: Virtual) -> None:
    for name in ("nowhere", "*", "_sweephand", "", "default\x00", "default#x"):
        virtual.admin.within(name).get("/jobs").expect(403)


def test_a_namespace_in_the_body_or_the_query_chooses_nothing(virtual: Virtual) -> None:
    virtual.admin.put("/namespaces/other", {}).expect(201)
    mine = virtual.callers.role("admin")
    mine.get("/jobs?namespace=other").expect(400)
    mine.post("/jobs", {"name": "a", "command": "x", "namespace": "other"}).expect(400)
    mine.post("/tokens", {"name": "t", "role": "viewer", "namespace": "other"}).expect(400)
    assert virtual.admin.within("other").get("/jobs").items == []


# People with JWTs.


def claims(**changes: Any) -> dict[str, Any]:
    now = int(CLOCK.now().timestamp())
    sound = {"sub": "ann", "iss": ISSUER, "aud": "sweephand", "token_use": "access", "iat": now, "exp": now + 600}
    return {name: value for name, value in {**sound, **changes}.items() if value is not None}


def signed(real: Served, payload: Mapping[str, Any], **headers: Any) -> str:
    key_id = real.issuer.jwks()["keys"][0]["kid"]
    return jwt.encode(dict(payload), issuer_key(), algorithm="RS256", headers={"kid": key_id, **headers})


def part(value: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


@pytest.fixture(scope="module")
def ann(real: Served) -> Client:
    """A member with a JWT."""
    real.admin.put("/namespaces/default/members/ann", {"role": "admin"}).expect(201)
    return Client(real.api, signed(real, claims()))


def test_a_member_has_the_role_that_the_namespace_gives(real: Served, ann: Client) -> None:
    ann.get("/tokens").expect(200)
    real.admin.put("/namespaces/default/members/zoe", {"role": "viewer"}).expect(201)
    zoe = Client(real.api, signed(real, claims(sub="zoe")))
    zoe.get("/jobs").expect(200)
    zoe.get("/tokens").expect(403)
    real.admin.put("/namespaces/default/members/zoe", {"role": "admin"}).expect(200)
    zoe.get("/tokens").expect(200)
    real.admin.delete("/namespaces/default/members/zoe").expect(204)
    zoe.get("/jobs").expect(403)
    Client(real.api, signed(real, claims(sub="stranger"))).get("/jobs").expect(403)
    ann.within("nowhere").get("/jobs").expect(403)


def test_a_member_of_one_namespace_is_a_stranger_in_another(real: Served, ann: Client) -> None:
    real.admin.put("/namespaces/closed", {}).expect(201)
    ann.within("closed").get("/jobs").expect(403)
    ann.put("/namespaces/closed/members/ann", {"role": "viewer"}).expect(404)


def test_a_person_may_ask_where_they_belong_before_they_can_name_it(real: Served) -> None:
    for name, role in (("quiet", "operator"), ("quieter", "admin")):
        real.admin.put(f"/namespaces/{name}", {}).expect(201)
        real.admin.put(f"/namespaces/{name}/members/cleo", {"role": role}).expect(201)
    real.admin.put("/namespaces/locked", {}).expect(201)
    cleo = Client(real.api, signed(real, claims(sub="cleo")))
    cleo.get("/jobs").expect(403)
    told = cleo.get("/session").expect(200).json
    assert told.pop("expiresAt") is not None
    assert told == {
        "caller": "cleo",
        "kind": "person",
        "role": "operator",
        "namespace": "quiet",
        "namespaces": ["quiet", "quieter"],
        "moreNamespaces": False,
        "platform": False,
    }
    assert cleo.within("quieter").get("/session").expect(200).json["role"] == "admin"
    assert [one["namespace"] for one in cleo.within("quieter").get("/namespaces").items] == ["quiet", "quieter"]
    for name in ("locked", "default", "nowhere", "*"):
        cleo.within(name).get("/session").expect(403)
    for method in ("POST", "PUT", "DELETE"):
        cleo.call(method, "/session", {}).expect(403)
    Client(real.api, signed(real, claims(sub="stranger"))).get("/session").expect(403)


def test_nobody_gives_themselves_a_role(ann: Client) -> None:
    ann.put("/namespaces/default/members/ann", {"role": "admin"}).expect(403)
    ann.put("/namespaces/default/members/ann", {"role": "viewer"}).expect(403)
    ann.delete("/namespaces/default/members/ann").expect(403)
    ann.put("/namespaces/default/members/eve", {"role": "viewer"}).expect(201)


def test_an_editor_gives_nobody_a_role(virtual: Virtual) -> None:
    editor = virtual.callers.role("editor")
    editor.put("/namespaces/default/members/me", {"role": "admin"}).expect(403)
    editor.post("/tokens", {"name": "t", "role": "viewer"}).expect(403)
    assert virtual.admin.get("/namespaces/default/members").items == []


def test_a_session_does_not_open_another_without_its_token(real: Served, ann: Client) -> None:
    ann.post("/session").expect(403)


def public_pem(real: Served) -> bytes:
    key = serialization.load_pem_private_key(issuer_key(), password=None)
    assert isinstance(key, rsa.RSAPrivateKey)
    return key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)


def hs256(key: bytes, payload: Mapping[str, Any], kid: str) -> str:
    """Signed by hand: the library refuses to use a public key as a secret."""
    text = f"{part({'alg': 'HS256', 'typ': 'JWT', 'kid': kid})}.{part(payload)}"
    made = hmac.new(key, text.encode(), hashlib.sha256).digest()
    return f"{text}.{base64.urlsafe_b64encode(made).decode().rstrip('=')}"


def test_no_forged_jwt_opens_anything(real: Served, ann: Client) -> None:
    ann.get("/jobs").expect(200)
    kid = real.issuer.jwks()["keys"][0]["kid"]
    now = int(real.clock.now().timestamp())
    other = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    sound = signed(real, claims())
    head, body, signature = sound.split(".")
    deep_alg = b'{"alg":' + b"[" * 5000
    forged = {
        "alg none": f"{part({'alg': 'none', 'kid': kid})}.{part(claims())}.",
        "alg None": f"{part({'alg': 'None', 'kid': kid})}.{part(claims())}.",
        "alg none with a signature": f"{part({'alg': 'none', 'kid': kid})}.{body}.{signature}",
        "HS256 with the public key": hs256(public_pem(real), claims(), kid),
        "HS256 with the key set": hs256(json.dumps(real.issuer.jwks()).encode(), claims(), kid),
        "another key": jwt.encode(claims(), other, algorithm="RS256", headers={"kid": kid}),
        "unknown kid": signed(real, claims(), kid="unknown"),
        "kid with a path": signed(real, claims(), kid="../../../../dev/null"),
        "kid with SQL": signed(real, claims(), kid="x' OR '1'='1"),
        "kid that is a list": f"{part({'alg': 'RS256', 'kid': [kid]})}.{body}.{signature}",
        "no kid": f"{part({'alg': 'RS256'})}.{body}.{signature}",
        "a key of its own": signed(real, claims(), kid="mine", jwk={"kty": "oct", "k": "AA"}),
        "PS256": jwt.encode(claims(), issuer_key(), algorithm="PS256", headers={"kid": kid}),
        "expired": signed(real, claims(exp=now - 5)),
        "without an end": signed(real, claims(exp=None)),
        "not yet": signed(real, claims(nbf=now + 600)),
        "issued in the future": signed(real, claims(iat=now + 600)),
        "wrong issuer": signed(real, claims(iss="https://evil.example")),
        "without an issuer": signed(real, claims(iss=None)),
        "wrong audience": signed(real, claims(aud="other")),
        "a list of audiences": signed(real, claims(aud=["sweephand"])),
        "without an audience": signed(real, claims(aud=None)),
        "an id token": signed(real, claims(token_use="id")),
        "without a use": signed(real, claims(token_use=None)),
        "without a subject": signed(real, claims(sub=None)),
        "an unknown critical header": signed(real, claims(), crit=["x"], x=1),
        "other claims": f"{head}.{part(claims(sub='root'))}.{signature}",
        "no signature": f"{head}.{body}.",
        "two parts": f"{head}.{body}",
        "five parts": f"{sound}.{body}.{signature}",
        "a deep header": f"{base64.urlsafe_b64encode(b'[' * 5000).decode()}.{body}.{signature}",
        "a deep alg": f"{base64.urlsafe_b64encode(deep_alg).decode()}.{body}.{signature}",
        "a header that is no object": f"{part(['RS256'])}.{body}.{signature}",
        "a session of an unknown token": signed(real, claims(tid="0" * 16)),
        "a session of a token with a path": signed(real, claims(tid="../x")),
    }
    for what, text in forged.items():
        assert Client(real.api, text).get("/jobs").status == 401, what


def test_no_garbage_opens_anything(real: Served) -> None:
    own = real.admin.token or ""
    head, token_id, secret = own.split("_", 2)
    wrong = secret[:-1] + ("A" if secret[-1] != "A" else "B")
    for header in (
        "",
        "Bearer",
        "Bearer ",
        "Bearer x",
        f"Basic {own}",
        own,
        f"Token {own}",
        f"Bearer {own}x",
        f"Bearer {own[:-1]}",
        f"Bearer {head}_{token_id}_{wrong}",
        f"Bearer {head}_{'0' * 16}_{secret}",
        f"Bearer {own.upper()}",
        f"Bearer {own} {own}",
        "Bearer " + "a" * 100_000,
        "Bearer " + "." * 8_000,
        "Bearer \x00",
        "Bearer ü.ü.ü",
        "Bearer null",
    ):
        assert real.callers.nobody().get("/jobs", Authorization=header).status == 401, header[:60]
    assert real.callers.nobody().get("/jobs", authorization=f"bearer {own}").status == 200


def test_a_refusal_names_no_reason_that_helps_a_guesser(real: Served) -> None:
    own = real.admin.token or ""
    wrong = own[:-1] + ("A" if own[-1] != "A" else "B")
    unknown = f"swh_{'0' * 16}_{own.rpartition('_')[2]}"
    answers = [Client(real.api, text).get("/jobs").text for text in (wrong, unknown, "x", signed(real, claims(exp=1)))]
    assert len(set(answers)) == 1


def test_a_token_of_a_minute_ago_is_refused_once_it_is_revoked(real: Served) -> None:
    made = real.admin.post("/tokens", {"name": "t", "role": "viewer"}).expect(201).json
    theirs = Client(real.api, made["token"])
    theirs.get("/jobs").expect(200)
    real.admin.delete(f"/tokens/{made['id']}").expect(204)
    theirs.get("/jobs").expect(401)
