"""Tokens, members, shared documents and limits; each change with its row in the audit log."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from sweephand.domain.access import DEFAULT, EVERYWHERE, Role, token_text
from sweephand.domain.ids import Namespace
from sweephand.engine.delete import delete
from sweephand.engine.grant import (
    check_namespace,
    delete_namespace,
    members_of,
    namespace_document,
    namespaces,
    put_member,
    put_namespace,
    remove_member,
    role_of,
)
from sweephand.engine.issue import OWN, find_token, issue, recognise, revoke, tokens_of
from sweephand.engine.put import put
from sweephand.engine.share import delete_document, put_calendar, put_document, put_pool
from sweephand.errors import Conflict, InvalidInput, NotFound, Refused, StaleVersion, TooMany, Unavailable
from sweephand.ports import World
from tests.engine.faults import Fault, Trap, failing_at, trapped, with_another
from tests.engine.world import NS, Crash, Town, job

HOLIDAYS = {"closed": ["2027-12-25"]}


def deeds(town: Town, namespace: Namespace = NS) -> list[tuple[str, str, str]]:
    """In any order: those of one instant have none."""
    found = town.stores.trail.deeds(namespace, limit=100)
    return sorted((deed.actor, deed.action, deed.subject) for deed in found)


def new_token(town: Town, role: Role = Role.EDITOR, **more: Any) -> Any:
    return issue(town.world, namespace=NS, role=role, name="ci", actor="ann", **more)


# Tokens.


def test_a_token_is_recognised_by_its_own_text_only(either: Town) -> None:
    issued, other = new_token(either), new_token(either)
    assert recognise(either.world, issued.text) == issued.token
    secret = issued.text.rpartition("_")[2] if issued.text.count("_") == 2 else issued.text[21:]
    wrong = [
        token_text(other.token.id, secret),
        token_text("0" * 16, secret),
        issued.text[:-1] + ("A" if issued.text[-1] != "A" else "B"),
        issued.text + "A",
        issued.text[:-1],
        issued.text.upper(),
        issued.text + "\n",
        issued.text.replace("swh_", "swh-"),
        "",
        "é" * 64,
        issued.token.digest,
    ]
    assert [recognise(either.world, text) for text in wrong] == [None] * len(wrong)


def test_nothing_that_is_kept_opens_anything(town: Town) -> None:
    issued = new_token(town)
    _, stored = town.stores.shared.get(OWN, "token", issued.token.id)
    secret = issued.text[len("swh_") + 17 :]
    assert secret not in str(stored)
    assert not issued.token.is_opened_by(issued.token.digest)
    assert not issued.token.is_opened_by("é")
    assert issued.token.is_opened_by(secret)
    rows = [(row.before, row.after) for row in town.stores.trail.deeds(NS, limit=9)]
    assert secret not in str(rows)
    assert issued.token.digest not in str(rows)


def test_a_token_ends_when_it_expires_and_when_it_is_revoked(either: Town) -> None:
    until = either.clock.at + timedelta(hours=1)
    brief, lasting = new_token(either, expires_at=until), new_token(either)
    either.clock.at = until - timedelta(microseconds=1)
    assert recognise(either.world, brief.text) == brief.token
    either.clock.at = until
    assert recognise(either.world, brief.text) is None
    assert find_token(either.world, lasting.token.id) == lasting.token
    revoke(either.world, [NS], lasting.token.id, actor="bob")
    assert recognise(either.world, lasting.text) is None
    with pytest.raises(NotFound):
        revoke(either.world, [NS], lasting.token.id, actor="bob")
    path = f"tokens/{lasting.token.id}"
    assert [deed for deed in deeds(either) if deed[2] == path] == [
        ("ann", "token.issue", path),
        ("bob", "token.revoke", path),
    ]


def test_a_token_is_revoked_in_its_own_namespace_only(town: Town) -> None:
    issued = new_token(town)
    with pytest.raises(NotFound):
        revoke(town.world, [Namespace("other")], issued.token.id, actor="eve")
    assert recognise(town.world, issued.text) is not None
    assert [one.id for one in tokens_of(town.world, [NS])] == [issued.token.id]
    assert tokens_of(town.world, [Namespace("other")]) == []


def test_a_token_for_every_namespace_is_in_the_log_of_the_default_one(town: Town) -> None:
    issue(town.world, namespace=EVERYWHERE, role=Role.ADMIN, name="root", actor="ann")
    assert (deeds(town), len(deeds(town, DEFAULT))) == ([], 1)


# Members.


def test_a_members_role_is_given_changed_and_taken(either: Town) -> None:
    put_member(either.world, NS, "bob@example.org", Role.ADMIN, actor="ann", self_id="ann")
    put_member(either.world, NS, "carl", Role.ADMIN, actor="ann", self_id="ann")
    put_member(either.world, NS, "carl", Role.VIEWER, actor="ann", self_id="ann")
    assert [(one.name, one.document["role"]) for one in members_of(either.world, NS)] == [
        ("bob@example.org", "admin"),
        ("carl", "viewer"),
    ]
    remove_member(either.world, NS, "carl", actor="ann", self_id="ann")
    assert (role_of(either.world, NS, "carl"), role_of(either.world, Namespace("other"), "bob")) == (None, None)
    with pytest.raises(NotFound):
        remove_member(either.world, NS, "carl", actor="ann", self_id="ann")
    assert [action for _, action, _ in deeds(either)] == ["member.delete"] + ["member.put"] * 3


def test_nobody_decides_about_themselves(town: Town) -> None:
    put_member(town.world, NS, "bob", Role.VIEWER, actor="ann", self_id="ann")
    with pytest.raises(Refused):
        put_member(town.world, NS, "bob", Role.ADMIN, actor="bob", self_id="bob")
    with pytest.raises(Refused):
        remove_member(town.world, NS, "bob", actor="bob", self_id="bob")
    assert role_of(town.world, NS, "bob") is Role.VIEWER


def test_the_last_admin_stays_one(either: Town) -> None:
    put_member(either.world, NS, "bob", Role.ADMIN, actor="root", self_id="root")
    with pytest.raises(Conflict, match="last admin"):
        put_member(either.world, NS, "bob", Role.EDITOR, actor="root", self_id="root")
    with pytest.raises(Conflict, match="last admin"):
        remove_member(either.world, NS, "bob", actor="root", self_id="root")
    put_member(either.world, NS, "carl", Role.ADMIN, actor="root", self_id="root")
    remove_member(either.world, NS, "bob", actor="root", self_id="root")
    assert [one.name for one in members_of(either.world, NS)] == ["carl"]


@pytest.mark.parametrize("name", ["", "a b", "-x", "a/b", "x" * 129, "é"])
def test_what_cannot_be_a_user_cannot_be_a_member(town: Town, name: str) -> None:
    with pytest.raises(InvalidInput):
        put_member(town.world, NS, name, Role.VIEWER, actor="ann", self_id="ann")


def test_each_role_covers_those_before_it() -> None:
    covered = [[needed for needed in Role if role.covers(needed)] for role in Role]
    assert covered == [list(Role)[: place + 1] for place in range(len(Role))]


# Namespaces.


def test_a_deleted_namespace_leaves_no_key_and_its_name_to_nobody(either: Town) -> None:
    put_namespace(either.world, NS, {"description": "ours"}, actor="root")
    put_member(either.world, NS, "bob", Role.ADMIN, actor="root", self_id="root")
    issued = new_token(either)
    either.put()
    with pytest.raises(Conflict, match="1 jobs"):
        delete_namespace(either.world, NS, actor="root")
    delete(either.world, job(), actor="root")
    delete_namespace(either.world, NS, actor="root")
    with pytest.raises(NotFound):
        check_namespace(either.world, NS)
    with pytest.raises(Conflict, match="another name"):
        put_namespace(either.world, NS, {}, actor="root")
    with pytest.raises(NotFound):
        delete_namespace(either.world, NS, actor="root")
    assert (role_of(either.world, NS, "bob"), recognise(either.world, issued.text)) == (None, None)


def test_the_default_namespace_is_always_there(town: Town) -> None:
    assert namespace_document(town.world, Namespace("default")) == (0, {})
    assert [one.name for one in namespaces(town.world)] == ["default"]
    put_namespace(town.world, "zoo", {}, actor="root")
    put_namespace(town.world, "default", {"limits": {"jobs": 1}}, actor="root")
    assert [one.name for one in namespaces(town.world)] == ["default", "zoo"]
    with pytest.raises(Conflict):
        delete_namespace(town.world, "default", actor="root")


# Shared documents.


def test_a_job_that_names_what_is_not_there_is_refused(either: Town) -> None:
    with pytest.raises(InvalidInput) as refused:
        either.put(schedule={"cron": "* * * * *", "calendar": "holidays"})
    assert refused.value.path == "schedule.calendar"
    with pytest.raises(InvalidInput) as refused:
        either.put(concurrency={"pool": "gpus"})
    assert refused.value.path == "concurrency.pool"
    assert either.stores.jobs.head(job()) is None


def test_a_document_stays_while_a_job_uses_it(either: Town) -> None:
    put_calendar(either.world, NS, "holidays", HOLIDAYS, expected=0, actor="ann")
    put_pool(either.world, NS, "gpus", 2, expected=0, actor="ann")
    either.put(schedule={"cron": "0 0 * * *", "calendar": "holidays"}, concurrency={"pool": "gpus"})
    for kind, name in (("calendar", "holidays"), ("pool", "gpus")):
        with pytest.raises(Conflict, match="used by job"):
            delete_document(either.world, NS, kind, name, actor="ann")
    delete(either.world, job(), actor="ann")
    for kind, name in (("calendar", "holidays"), ("pool", "gpus")):
        delete_document(either.world, NS, kind, name, actor="ann")
        with pytest.raises(NotFound):
            delete_document(either.world, NS, kind, name, actor="ann")


def test_a_document_used_by_many_names_a_few(town: Town) -> None:
    put_pool(town.world, NS, "gpus", 2, expected=0)
    for number in range(7):
        town.put(f"job-{number}", None, concurrency={"pool": "gpus"})
    with pytest.raises(Conflict, match="job-4 and others"):
        delete_document(town.world, NS, "pool", "gpus", actor="ann")


def test_a_stale_change_of_a_document_is_refused_and_leaves_no_row(either: Town) -> None:
    put_document(either.world, NS, "template", "mail", {"text": "a"}, expected=0, actor="ann")
    rival = with_another(
        either.world,
        "shared.put",
        lambda: put_document(either.world, NS, "template", "mail", {"text": "b"}, expected=1, actor="bob"),
    )
    with pytest.raises(StaleVersion):
        put_document(rival, NS, "template", "mail", {"text": "c"}, expected=1, actor="carl")
    with pytest.raises(StaleVersion):
        delete_document(either.world, NS, "template", "mail", actor="carl", expected=1)
    assert [actor for actor, _, _ in deeds(either)] == ["ann", "bob"]
    assert either.stores.shared.get(NS, "template", "mail") == (2, {"text": "b"})


Deed = Callable[[World], object]
DEEDS: dict[str, Deed] = {
    "put": lambda world: put_document(world, NS, "template", "mail", {"text": "b"}, expected=1, actor="ann"),
    "delete": lambda world: delete_document(world, NS, "template", "mail", actor="ann"),
    "member": lambda world: put_member(world, NS, "bob", Role.EDITOR, actor="ann", self_id="ann"),
    "token": lambda world: issue(world, namespace=NS, role=Role.EDITOR, name="ci", actor="ann"),
    "job": lambda world: put(world, NS, {"name": "job", "command": "true"}, actor="ann", expected=None),
}


@pytest.mark.parametrize("fault", [Fault.CRASH, Fault.REFUSED, Fault.UNHEARD])
@pytest.mark.parametrize("deed", DEEDS)
def test_a_change_and_its_row_are_written_together_or_not_at_all(either: Town, deed: str, fault: Fault) -> None:
    put_document(either.world, NS, "template", "mail", {"text": "a"}, expected=0, actor="root")
    moment = 0
    while True:
        before = _written(either)
        trap = Trap(moment, fault)
        try:
            DEEDS[deed](trapped(either.world, trap))
        except (Crash, Unavailable):
            pass
        except (Conflict, NotFound):
            break  # it took effect before
        after = _written(either)
        rows = len(after[1]) - len(before[1])
        assert rows == (after[0] != before[0]), f"{trap.calls[moment]}: {rows} rows"
        if moment >= len(trap.calls):
            break
        moment += 1
    assert len(_written(either)[1]) > 1


def _written(town: Town) -> tuple[Any, list[Any]]:
    shared = town.stores.shared
    documents = [shared.listed(*place, limit=99) for place in ((NS, "template"), (NS, "member"), (OWN, "token"))]
    return (documents, town.stores.jobs.head(job())), deeds(town)


def test_a_document_whose_answer_was_lost_is_put_once(either: Town) -> None:
    unheard = failing_at(either.world, "shared.put", Fault.UNHEARD)
    assert put_document(unheard, NS, "template", "mail", {"n": 1, "of": [1.5, None]}, expected=0, actor="ann") == 1
    assert len(deeds(either)) == 1


# Limits.


def test_a_namespace_has_as_many_jobs_as_its_limit_and_room_after_a_delete(either: Town) -> None:
    put_namespace(either.world, NS, {"limits": {"jobs": 2}}, actor="root")
    either.put("a", None)
    either.put("b", None)
    with pytest.raises(TooMany):
        either.put("c", None)
    either.put("b", None, expected=1)  # an edit needs no room
    delete(either.world, job("a"), actor="ann")
    either.put("c", None)
    with pytest.raises(TooMany):
        either.put("a", None)


def test_frequent_jobs_are_counted_and_those_that_are_none_any_more_make_room(either: Town) -> None:
    put_namespace(either.world, NS, {"limits": {"frequentJobs": 2}}, actor="root")
    either.put("a", {"every": "10s"})
    either.put("b", {"every": "10s"})
    either.put("often", "* * * * *")  # once a minute is not too often
    with pytest.raises(InvalidInput, match="more often than once a minute"):
        either.put("c", {"every": "10s"})
    with pytest.raises(InvalidInput):
        either.put("often", {"every": "10s"}, expected=1)
    either.put("a", {"every": "20s"}, expected=1)
    either.put("a", "0 0 * * *", expected=2)
    either.put("c", {"every": "10s"})
    delete(either.world, job("b"), actor="ann")
    either.put("d", {"every": "10s"})
    with pytest.raises(InvalidInput):
        either.put("e", {"every": "10s"})


def test_one_namespaces_frequent_jobs_take_no_room_of_anothers(town: Town) -> None:
    other = Namespace("other")
    for name in (NS, other):
        put_namespace(town.world, name, {"limits": {"frequentJobs": 1}}, actor="root")
    town.put("a", {"every": "10s"})
    put(town.world, other, {"name": "a", "command": "true", "schedule": {"every": "10s"}}, actor="ann", expected=None)
    with pytest.raises(InvalidInput):
        town.put("b", {"every": "10s"})
