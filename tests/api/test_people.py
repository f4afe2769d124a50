"""The contract of namespaces, members, tokens and sessions, and of what is written down about them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import jwt
import pytest

from sweephand.domain.access import DEFAULT, Caller, PrincipalKind, Role
from tests.api.client import Client, Known, Served, Virtual
from tests.api.test_contract import create
from tests.api.test_runs import refuse, trigger

TOKEN = {"id", "name", "namespace", "role", "createdAt", "createdBy", "expiresAt"}


@pytest.fixture
def admin(virtual: Virtual) -> Client:
    return virtual.admin


# Namespaces.


def test_a_namespace_is_made_shown_changed_and_removed(admin: Client) -> None:
    made = admin.put("/namespaces/team", {"description": "ours", "limits": {"jobs": 2}}).expect(201).json
    assert made == {"namespace": "team", "version": 1, "description": "ours", "limits": {"jobs": 2}, "weight": 1}
    assert admin.get("/namespaces/team").expect(200).json == {**made, "jobs": 0}
    assert [one["namespace"] for one in admin.get("/namespaces").expect(200).items] == ["default", "team"]
    assert admin.put("/namespaces/team", {}, If_Match="1").expect(200).json["version"] == 2
    admin.put("/namespaces/team", {"description": "theirs"}, If_Match="1").expect(412)
    team = admin.within("team")
    create(team, "daily", command="x")
    admin.delete("/namespaces/team").expect(409)
    team.delete("/jobs/daily").expect(204)
    admin.delete("/namespaces/team").expect(204)
    admin.get("/namespaces/team").expect(404)
    team.get("/jobs").expect(403)
    assert admin.delete("/namespaces/default").expect(409).json["detail"] == "The default namespace stays."


def test_pages_of_namespaces_leave_none_out_that_sorts_before_the_unwritten_default_one(admin: Client) -> None:
    for name in ("another", "team"):
        admin.put(f"/namespaces/{name}", {}).expect(201)
    pages = list(admin.pages("/namespaces?limit=1"))
    assert [one["namespace"] for page in pages for one in page] == ["another", "default", "team"]


def test_a_namespace_has_a_weight_beside_its_limits(admin: Client) -> None:
    assert admin.put("/namespaces/gold", {"weight": 3}).expect(201).json["weight"] == 3
    assert admin.get("/namespaces/gold").expect(200).json["weight"] == 3
    assert admin.get("/namespaces/default").expect(200).json["weight"] == 1
    for wrong in (0, 101, -1, 1.5, "3", True):
        refused = admin.put("/namespaces/gold", {"weight": wrong}).expect(400).json
        assert [one["path"] for one in refused["errors"]] == ["weight"]
    assert admin.put("/namespaces/gold", {}).expect(200).json["weight"] == 1


def test_a_job_exists_in_its_namespace_only(admin: Client) -> None:
    admin.put("/namespaces/team", {}).expect(201)
    create(admin.within("team"), "daily", command="x")
    admin.get("/jobs/daily").expect(404)
    create(admin, "daily", command="y")
    assert admin.within("team").get("/jobs/daily").json["tasks"][0]["run"] == {"command": ["x"]}


def test_a_paused_namespace_resumes_only_what_it_paused(virtual: Virtual) -> None:
    admin = virtual.admin
    for name in ("a", "b", "c"):
        create(admin, name)
    admin.put("/namespaces/other", {}).expect(201)
    create(admin.within("other"), "a")
    admin.post("/jobs/b/pause", {"note": "mine"}).expect(200)
    assert admin.post("/namespaces/default/pause").expect(200).json == {"changed": 2, "nextCursor": None}
    assert {job["status"] for job in admin.get("/jobs").items} == {"paused"}
    assert admin.within("other").get("/jobs/a").json["status"] == "active"
    assert admin.post("/namespaces/default/pause").expect(200).json["changed"] == 0
    virtual.go_on(hours=2)
    assert admin.get("/runs").items == []
    assert admin.post("/namespaces/default/resume", {"catchup": "latest"}).expect(200).json["changed"] == 2
    assert [job["status"] for job in admin.get("/jobs").items] == ["active", "paused", "active"]
    virtual.go_on(minutes=1)
    assert [run["jobId"] for run in admin.get("/runs").items] == ["c", "a"]


def test_a_job_paused_by_hand_after_the_namespace_was_resumed_stays_paused(admin: Client) -> None:
    create(admin, "a")
    admin.post("/namespaces/default/pause").expect(200)
    admin.post("/namespaces/default/resume").expect(200)
    admin.post("/jobs/a/pause").expect(200)
    assert admin.post("/namespaces/default/resume").expect(200).json["changed"] == 0
    assert admin.get("/jobs/a").json["status"] == "paused"


# Members.


def test_members_have_roles(admin: Client) -> None:
    admin.put("/namespaces/team", {}).expect(201)
    assert admin.put("/namespaces/team/members/ann@example.org", {"role": "admin"}).expect(201).json == {
        "member": "ann@example.org",
        "role": "admin",
    }
    admin.put("/namespaces/team/members/bob", {"role": "viewer"}).expect(201)
    admin.put("/namespaces/team/members/bob", {"role": "editor"}).expect(200)
    members = admin.get("/namespaces/team/members").expect(200).items
    assert members == [{"member": "ann@example.org", "role": "admin"}, {"member": "bob", "role": "editor"}]
    admin.delete("/namespaces/team/members/bob").expect(204)
    admin.delete("/namespaces/team/members/bob").expect(404)
    admin.put("/namespaces/team/members/bob", {"role": "king"}).expect(400)
    admin.put("/namespaces/nowhere/members/bob", {"role": "viewer"}).expect(404)


def test_the_last_admin_of_a_namespace_stays(admin: Client) -> None:
    for member in ("ann", "bob"):
        admin.put(f"/namespaces/default/members/{member}", {"role": "admin"}).expect(201)
    admin.delete("/namespaces/default/members/ann").expect(204)
    admin.delete("/namespaces/default/members/bob").expect(409)
    admin.put("/namespaces/default/members/bob", {"role": "viewer"}).expect(409)
    assert admin.get("/namespaces/default/members").items == [{"member": "bob", "role": "admin"}]


# Tokens.


def test_the_text_of_a_token_is_shown_once(virtual: Virtual) -> None:
    admin = virtual.admin
    made = admin.post("/tokens", {"name": "ci", "role": "operator"}).expect(201)
    assert made.json.keys() == TOKEN | {"token"}
    assert made.headers["cache-control"] == "no-store"
    text = made.json["token"]
    secret = text.rpartition("_")[2]
    found = [one for one in admin.get("/tokens").expect(200).items if one["id"] == made.json["id"]]
    assert [one.keys() for one in found] == [TOKEN]
    for path in ("/tokens", "/audit"):
        assert secret not in admin.get(path).text
    assert Client(virtual.api, text).get("/jobs").status == 200


def test_no_answer_with_a_token_is_kept_for_a_repeated_call(virtual: Virtual) -> None:
    body = {"name": "ci", "role": "viewer"}
    first = virtual.admin.post("/tokens", body, Idempotency_Key="k").expect(201).json
    second = virtual.admin.post("/tokens", body, Idempotency_Key="k").expect(201).json
    assert first["id"] != second["id"]


def test_a_token_ends_when_it_says(virtual: Virtual) -> None:
    ends_at = "2026-03-02T01:00:00Z"
    made = virtual.admin.post("/tokens", {"name": "ci", "role": "viewer", "expiresAt": ends_at}).expect(201).json
    assert made["expiresAt"] == ends_at
    brief = Client(virtual.api, made["token"])
    virtual.jump(minutes=49)
    brief.get("/jobs").expect(200)
    virtual.jump(minutes=1)
    brief.get("/jobs").expect(401)
    refused = virtual.admin.post("/tokens", {"name": "ci", "role": "viewer", "expiresAt": ends_at}).expect(400)
    assert refused.json["errors"][0]["path"] == "expiresAt"


def test_a_revoked_token_is_refused_at_its_next_call(virtual: Virtual) -> None:
    made = virtual.admin.post("/tokens", {"name": "ci", "role": "admin"}).expect(201).json
    theirs = Client(virtual.api, made["token"])
    theirs.get("/jobs").expect(200)
    virtual.admin.delete(f"/tokens/{made['id']}").expect(204)
    theirs.get("/jobs").expect(401)
    virtual.admin.delete(f"/tokens/{made['id']}").expect(404)
    assert made["id"] not in [one["id"] for one in virtual.admin.get("/tokens").items]


def test_a_removed_namespace_lets_nobody_in_and_gives_its_name_to_nobody(virtual: Virtual) -> None:
    virtual.admin.put("/namespaces/team", {}).expect(201)
    virtual.admin.put("/namespaces/team/members/ann", {"role": "admin"}).expect(201)
    theirs = virtual.callers.role("admin", "team")
    theirs.get("/jobs").expect(200)
    virtual.admin.delete("/namespaces/team").expect(204)
    theirs.get("/jobs").expect(401)
    virtual.admin.put("/namespaces/team", {"description": "another team"}).expect(409)
    theirs.get("/jobs").expect(401)
    virtual.admin.within("team").get("/tokens").expect(403)
    virtual.admin.get("/namespaces/team/members").expect(404)


# Sessions.


def test_a_session_is_a_jwt_of_one_hour_in_the_role_of_its_token(served: Served) -> None:
    viewer = served.callers.role("viewer")
    opened = viewer.post("/session").expect(201)
    assert opened.headers["cache-control"] == "no-store"
    (key,) = served.callers.nobody().get("/jwks.json").expect(200).json["keys"]
    claims = jwt.decode(opened.json["token"], jwt.PyJWK(key).key, algorithms=["RS256"], audience="sweephand")
    assert claims["exp"] - claims["iat"] == 3600
    ends_at = datetime.fromisoformat(opened.json["expiresAt"])
    assert timedelta(minutes=59) < ends_at - served.clock.now() <= timedelta(hours=1)
    session = Client(served.api, opened.json["token"])
    session.get("/jobs").expect(200)
    session.post("/jobs", {"name": "daily", "command": "x"}).expect(403)


def test_a_session_dies_with_the_token_that_opened_it(served: Served) -> None:
    made = served.admin.post("/tokens", {"name": "ci", "role": "viewer"}).expect(201).json
    session = Client(served.api, Client(served.api, made["token"]).post("/session").expect(201).json["token"])
    session.get("/jobs").expect(200)
    served.admin.delete(f"/tokens/{made['id']}").expect(204)
    session.get("/jobs").expect(401)


def test_where_there_is_no_issuer_there_are_no_sessions(virtual: Virtual) -> None:
    virtual.admin.post("/session").expect(404)
    virtual.callers.nobody().get("/jwks.json").expect(404)


# Who is asking.


def test_a_token_is_told_what_it_may_do_and_nothing_secret(virtual: Virtual) -> None:
    for name in ("team", "another"):
        virtual.admin.put(f"/namespaces/{name}", {}).expect(201)
    body = {"name": "ci", "role": "operator", "expiresAt": "2026-03-02T01:00:00Z"}
    made = virtual.admin.within("team").post("/tokens", body).expect(201).json
    answered = Client(virtual.api, made["token"]).get("/session").expect(200)
    assert answered.headers["cache-control"] == "no-store"
    assert answered.json == {
        "caller": made["id"],
        "kind": "token",
        "role": "operator",
        "namespace": "team",
        "namespaces": ["team"],
        "moreNamespaces": False,
        "platform": False,
        "expiresAt": "2026-03-02T01:00:00Z",
    }
    assert made["token"].rpartition("_")[2] not in answered.text
    platform = virtual.admin.within("team").get("/session").expect(200).json
    assert (platform["role"], platform["namespace"], platform["platform"]) == ("admin", "team", True)
    assert (platform["namespaces"], platform["expiresAt"]) == (["another", "default", "team"], None)


def test_a_person_is_told_the_namespaces_that_have_made_them_a_member(virtual: Virtual) -> None:
    for name in ("closed", "team"):
        virtual.admin.put(f"/namespaces/{name}", {}).expect(201)
    for name, role in (("default", "viewer"), ("team", "admin")):
        virtual.admin.put(f"/namespaces/{name}/members/ann", {"role": role}).expect(201)
    virtual.admin.put("/namespaces/closed/members/ann-2", {"role": "admin"}).expect(201)
    caller = Caller("ann", PrincipalKind.USER, DEFAULT, Role.VIEWER, expires_at=virtual.now + timedelta(hours=1))
    ann = Client(Known(virtual.api, caller))
    first = ann.get("/session").expect(200).json
    assert (first["caller"], first["kind"], first["role"]) == ("ann", "person", "viewer")
    assert (first["namespace"], first["namespaces"], first["platform"]) == ("default", ["default", "team"], False)
    assert first["expiresAt"] == "2026-03-02T01:10:00Z"
    virtual.admin.delete("/namespaces/default/members/ann").expect(204)
    assert ann.get("/session").expect(200).json["namespaces"] == ["team"]
    assert [one["namespace"] for one in ann.get("/namespaces").items] == ["team"]


def test_a_session_is_told_when_it_ends_and_not_when_its_token_does(served: Served) -> None:
    ends_at = served.clock.now() + timedelta(days=1)
    for expires, hours in ((None, 1), (ends_at, 1), (served.clock.now() + timedelta(minutes=5), 0)):
        body = {"name": "ci", "role": "viewer", "expiresAt": expires.isoformat() if expires else None}
        made = served.admin.post("/tokens", body).expect(201).json
        opened = Client(served.api, made["token"]).post("/session").expect(201).json
        told = Client(served.api, opened["token"]).get("/session").expect(200).json
        assert (told["caller"], told["kind"], told["role"]) == (made["id"], "token", "viewer")
        assert told["expiresAt"] == (opened["expiresAt"][:19] + "Z" if hours else made["expiresAt"])


# What is written down.


def test_every_change_leaves_a_row_with_who_and_what(virtual: Virtual) -> None:
    admin = virtual.admin
    virtual.on("bad", refuse)

    def newest(change: Callable[[], Any]) -> tuple[str, str, Any, Any]:
        """The row that a change left."""
        virtual.jump(seconds=1)
        before = admin.get("/audit").items
        change()
        after = admin.get("/audit").items
        assert len(after) == len(before) + 1, after[:3]
        row = after[0]
        assert row.keys() == {"at", "actor", "action", "subject", "before", "after", "note"}
        assert row["actor"].startswith("token:")
        return row["action"], row["subject"], row["before"], row["after"]

    active, paused = {"version": 1, "status": "active"}, {"version": 1, "status": "paused"}
    made = newest(lambda: create(admin, "bad", command="x"))
    assert made == ("job.put", "jobs/bad", {}, active)
    assert newest(lambda: admin.post("/jobs/bad/pause")) == ("job.pause", "jobs/bad", active, paused)
    resumed = newest(lambda: admin.post("/jobs/bad/resume"))
    assert resumed == ("job.resume", "jobs/bad", paused, {**active, "catchup": "none"})
    body = {"command": "y"}
    changed = newest(lambda: admin.put("/jobs/bad", body, If_Match="1").expect(200))
    assert changed == ("job.put", "jobs/bad", active, {"version": 2, "status": "active"})
    assert newest(lambda: admin.post("/jobs/bad/rollback", {"version": 1}).expect(200))[0] == "job.put"
    started = newest(lambda: trigger(admin, "bad", params={"a": 1}))
    assert started == ("job.trigger", "jobs/bad", None, {"params": {"a": 1}})
    virtual.go_on(seconds=1)
    run_id = admin.get("/jobs/bad/runs").items[0]["runId"]
    run = f"jobs/bad/runs/{run_id}"
    assert newest(lambda: admin.post(f"/{run}/rerun").expect(202))[:2] == ("run.rerun", run)
    again = admin.get("/jobs/bad/runs?state=queued").items[0]["runId"]
    cancelled = newest(lambda: admin.post(f"/jobs/bad/runs/{again}/cancel").expect(200))
    assert cancelled[:2] == ("run.cancel", f"jobs/bad/runs/{again}")
    redriven = newest(lambda: admin.post(f"/deadletters/bad:{run_id}/redrive").expect(202))
    assert redriven[:2] == ("deadletter.redrive", f"deadletters/bad:{run_id}")
    bulk = {"action": "cancel", "filter": {"job": "bad"}}
    virtual.go_on()
    assert newest(lambda: admin.post("/runs/bulk", bulk).expect(200))[:2] == ("runs.cancel", "runs")
    event = {"source": "shop", "type": "order"}
    assert newest(lambda: admin.post("/events", event).expect(202))[:2] == ("event.publish", "events/shop")
    gone = newest(lambda: admin.delete("/jobs/bad").expect(204))
    assert gone == ("job.delete", "jobs/bad", {"version": 3, "status": "active"}, {"version": 4, "status": "deleted"})


def test_changes_of_shared_objects_and_of_people_leave_rows_too(virtual: Virtual) -> None:
    admin = virtual.admin
    virtual.jump(seconds=1)  # after the row of the admin's own token

    def newest(answered: Any) -> tuple[str, str, Any, Any]:
        assert answered.status < 300, answered.text
        virtual.jump(seconds=1)
        row = admin.get("/audit?limit=1").items[0]
        return row["action"], row["subject"], row["before"], row["after"]

    for kind, first, second in (
        ("calendar", {"weekdays": ["mon"]}, {"weekdays": ["tue"]}),
        ("pool", {"slots": 1}, {"slots": 2}),
        ("template", {"retries": 1}, {"retries": 2}),
    ):
        path, subject = f"/{kind}s/one", f"{kind}s/one"
        assert newest(admin.put(path, first)) == (f"{kind}.put", subject, None, first)
        assert newest(admin.put(path, second)) == (f"{kind}.put", subject, first, second)
        assert newest(admin.delete(path)) == (f"{kind}.delete", subject, second, None)

    member, path = "members/ann", "/namespaces/default/members/ann"
    viewer, editor = {"role": "viewer"}, {"role": "editor"}
    assert newest(admin.put(path, viewer)) == ("member.put", member, None, viewer)
    assert newest(admin.put(path, editor)) == ("member.put", member, viewer, editor)
    assert newest(admin.delete(path)) == ("member.delete", member, editor, None)

    issued = admin.post("/tokens", {"name": "ci", "role": "viewer"})
    action, subject, _, after = newest(issued)
    assert (action, subject, after["role"]) == ("token.issue", f"tokens/{issued.json['id']}", "viewer")
    action, _, before, after = newest(admin.delete(f"/tokens/{issued.json['id']}"))
    assert (action, before["name"], after) == ("token.revoke", "ci", None)


def test_a_refused_change_leaves_no_row(admin: Client) -> None:
    create(admin, "daily")
    before = admin.get("/audit").text
    admin.post("/jobs", {"name": "daily", "command": "x"}).expect(409)
    admin.put("/jobs/daily", {"command": "x"}, If_Match="9").expect(412)
    admin.post("/jobs/nothing/trigger").expect(404)
    admin.post("/jobs/daily/runs/20260101T000000Z/cancel").expect(404)
    admin.delete("/pools/nothing").expect(404)
    assert admin.get("/audit").text == before


def test_the_audit_log_comes_newest_first_in_pages(admin: Client) -> None:
    for number in range(7):
        create(admin, f"job-{number}", command="x")
    every = admin.get("/audit").items
    assert [row["subject"] for row in every][:7] == [f"jobs/job-{number}" for number in range(6, -1, -1)]
    pages = list(admin.pages("/audit?limit=3"))
    assert len(pages) > 2
    assert [row for page in pages for row in page] == every


def test_the_audit_log_cannot_be_changed(admin: Client) -> None:
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        assert admin.call(method, "/audit").expect(405).headers["allow"] == "GET"


# Figures.


def test_stats_count_what_happened(virtual: Virtual) -> None:
    admin = virtual.admin
    create(admin, "often", schedule="*/10 * * * *", command="x")
    create(admin, "gone", command="x")
    admin.delete("/jobs/gone").expect(204)
    virtual.on("often", lambda call: refuse(call) if call.run.fire_at.minute == 30 else None)
    virtual.go_on(minutes=45)
    stats = admin.get("/stats").expect(200).json
    assert {"jobs", "runs", "skewMs", "throughputPerMinute"} <= stats.keys()
    assert (stats["jobs"], stats["runs"]) == (1, {"succeeded": 4, "failed": 1})
    assert stats["skewMs"] == {"p50": 0, "p99": 0}
    assert stats["throughputPerMinute"] == round(5 / 60, 3)


def test_health_needs_no_token_and_tells_nothing(virtual: Virtual) -> None:
    assert virtual.callers.nobody().get("/health").expect(200).json == {"status": "ok"}
