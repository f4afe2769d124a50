"""The contract of `Jobs`: heads move by compare-and-set, versions and changes are written once."""

from __future__ import annotations

from hypothesis import given, settings
from msgspec.structs import replace

from sweephand.domain.ids import JobName, Namespace
from sweephand.domain.job import CatchupPolicy, Head, JobEvent, JobStatus, JobVersion
from sweephand.domain.trail import deed_of
from sweephand.ports import DueEntry, DueKind
from tests.contract.samples import (
    DEFAULT,
    HOUR,
    JOB,
    MINUTE,
    NOW,
    SECOND,
    TICK,
    change_of,
    head_of,
    heads,
    key_of,
    version_of,
)
from tests.contract.world import Stores


def put(stores: Stores, head: Head, version: JobVersion | None = None) -> Head:
    assert stores.jobs.change(None, head, change_of(head), version, None)
    return head


def advanced(head: Head, nonce: str) -> Head:
    return head.advanced(planned_upto=NOW + MINUTE, plan_at=NOW + HOUR, nonce=nonce)


def test_nothing_is_known_of_a_job_that_was_never_put(stores: Stores) -> None:
    assert stores.jobs.head(JOB) is None
    assert stores.jobs.heads_of([JOB]) == []
    assert stores.jobs.namespaces() == []
    assert stores.jobs.heads(DEFAULT, limit=10) == []
    assert stores.jobs.version(JOB, 1) is None
    assert stores.jobs.versions(JOB, limit=10) == []
    assert stores.jobs.timeline(JOB) == []
    assert stores.jobs.count(DEFAULT) == 0
    assert stores.trail.deeds(DEFAULT, limit=10) == []


def test_every_field_of_a_head_comes_back(stores: Stores, examples: settings) -> None:
    @examples
    @given(head=heads)
    def check(head: Head) -> None:
        put(stores, head)
        assert stores.jobs.head(head.key) == head
        assert stores.jobs.heads_of([head.key]) == [head]
        later = replace(head, rev=1, plan_at=None, paused_since=None, catchup=None, catchup_upto=None)
        assert stores.jobs.advance([(head, later)]) == [True]
        assert stores.jobs.head(head.key) == later

    check()


def test_a_change_writes_head_version_timeline_audit_and_due_entry_together(stores: Stores) -> None:
    head, version = head_of(), version_of()
    change = change_of(head, catchup=CatchupPolicy.ALL, note="erste Fassung: schön")
    entry = DueEntry(NOW + MINUTE, DueKind.JOB, str(JOB), 3)

    assert stores.jobs.change(None, head, change, version, entry)

    assert stores.jobs.head(JOB) == head
    assert stores.jobs.version(JOB, 1) == version
    assert stores.jobs.timeline(JOB) == [change]
    assert stores.trail.deeds(DEFAULT, limit=10) == [deed_of(change, None, head)]
    assert stores.due.read(3, after=None, upto=NOW + HOUR, limit=10) == [entry]


def test_a_change_that_loses_writes_nothing(stores: Stores) -> None:
    first = put(stores, head_of())
    assert stores.jobs.advance([(first, advanced(first, "sweep"))]) == [True]

    paused = first.changed(JobEvent.PAUSED, at=NOW + SECOND, nonce="pause", paused_since=NOW + SECOND)
    entry = DueEntry(NOW, DueKind.JOB, str(JOB), 3)
    lost = stores.jobs.change(first, paused, change_of(paused, JobEvent.PAUSED), version_of(number=2), entry)

    assert not lost
    assert stores.jobs.head(JOB) == advanced(first, "sweep")
    assert stores.jobs.timeline(JOB) == [change_of(first)]
    assert stores.trail.deeds(DEFAULT, limit=10) == [deed_of(change_of(first), None, first)]
    assert stores.jobs.version(JOB, 2) is None
    assert stores.due.read(3, after=None, upto=NOW, limit=10) == []


def test_a_first_change_loses_where_a_head_exists(stores: Stores) -> None:
    head = put(stores, head_of())
    rival = replace(head, nonce="rival", version=2)
    assert not stores.jobs.change(None, rival, change_of(rival, at=NOW + SECOND), version_of(number=2), None)
    assert stores.jobs.head(JOB) == head
    assert stores.jobs.versions(JOB, limit=10) == []


def test_a_later_change_loses_where_no_head_exists(stores: Stores) -> None:
    absent = head_of()
    after = absent.changed(JobEvent.PAUSED, at=NOW + SECOND, nonce="pause")
    assert not stores.jobs.change(absent, after, change_of(after, JobEvent.PAUSED), None, None)
    assert stores.jobs.head(JOB) is None
    assert stores.jobs.timeline(JOB) == []


def test_a_repeated_change_is_recognised_by_its_nonce_and_leaves_one_row(stores: Stores) -> None:
    head, version = head_of(), version_of()
    assert stores.jobs.change(None, head, change_of(head), version, None)
    assert stores.jobs.change(None, head, change_of(head), version, None)

    paused = head.changed(JobEvent.PAUSED, at=NOW + SECOND, nonce="pause", paused_since=NOW + SECOND)
    change = change_of(paused, JobEvent.PAUSED)
    assert stores.jobs.change(head, paused, change, None, None)
    assert stores.jobs.change(head, paused, change, None, None)

    assert stores.jobs.timeline(JOB) == [change_of(head), change]
    assert stores.trail.deeds(DEFAULT, limit=10) == [
        deed_of(change, head, paused),
        deed_of(change_of(head), None, head),
    ]
    assert stores.jobs.versions(JOB, limit=10) == [version]


def test_of_two_advances_from_one_head_one_wins(stores: Stores) -> None:
    head = put(stores, head_of())
    assert stores.jobs.advance([(head, advanced(head, "a"))]) == [True]
    assert stores.jobs.advance([(head, advanced(head, "b"))]) == [False]
    assert stores.jobs.head(JOB) == advanced(head, "a")


def test_a_repeated_advance_is_recognised_by_its_nonce_until_the_head_moves_on(stores: Stores) -> None:
    head = put(stores, head_of())
    first = advanced(head, "a")
    assert stores.jobs.advance([(head, first)]) == [True]
    assert stores.jobs.advance([(head, first)]) == [True]
    assert stores.jobs.advance([(first, advanced(first, "b"))]) == [True]
    assert stores.jobs.advance([(head, first)]) == [False]
    assert stores.jobs.head(JOB) == advanced(first, "b")


def test_an_empty_nonce_is_nobodys(stores: Stores) -> None:
    head = put(stores, head_of())
    assert stores.jobs.advance([(head, advanced(head, ""))]) == [True]
    assert stores.jobs.advance([(head, advanced(head, ""))]) == [False]


def test_each_advance_answers_for_itself(stores: Stores) -> None:
    current, moved, absent = head_of(key_of("a")), head_of(key_of("b")), head_of(key_of("c"))
    put(stores, current)
    put(stores, moved)
    assert stores.jobs.advance([(moved, advanced(moved, "other"))]) == [True]

    batch = [(head, advanced(head, "mine")) for head in (moved, current, absent)]
    assert stores.jobs.advance(batch) == [False, True, False]
    assert stores.jobs.head(current.key) == advanced(current, "mine")
    assert stores.jobs.head(moved.key) == advanced(moved, "other")
    assert stores.jobs.head(absent.key) is None
    assert stores.jobs.advance([]) == []


def test_heads_of_leaves_absent_jobs_out(stores: Stores) -> None:
    known = [put(stores, head_of(key_of(f"job-{n:03}"))) for n in range(105)]
    asked = [head.key for head in known] + [key_of("absent"), key_of("job-001", "other")]
    assert sorted(stores.jobs.heads_of(asked), key=lambda head: head.key) == known
    assert stores.jobs.heads_of([]) == []


def test_heads_are_listed_by_name_from_after_a_name_with_deleted_ones(stores: Stores) -> None:
    names = ["B", "a", "a-b", "a.b", "a0", "aa", "a_b", "b"]
    for name in reversed(names):
        put(stores, head_of(key_of(name)))
    gone = head_of(key_of("a0")).changed(JobEvent.DELETED, at=NOW + SECOND, nonce="gone", plan_at=None)
    stores.jobs.change(head_of(key_of("a0")), gone, change_of(gone, JobEvent.DELETED), None, None)
    put(stores, head_of(key_of("a", "default-2")))

    found = stores.jobs.heads(DEFAULT, limit=100)
    assert [head.key.name for head in found] == sorted(names)
    assert [head.key.name for head in found if head.status is JobStatus.DELETED] == ["a0"]

    paged: list[Head] = []
    while page := stores.jobs.heads(DEFAULT, after=paged[-1].key.name if paged else None, limit=3):
        assert len(page) <= 3
        paged += page
    assert paged == found
    assert stores.jobs.heads(DEFAULT, after=JobName("a-"), limit=1)[0].key.name == "a-b"


def test_namespaces_are_listed_once_and_in_order(stores: Stores) -> None:
    for namespace in ("team-b", "team", "team.c", "Z"):
        for name in ("one", "two"):
            put(stores, head_of(key_of(name, namespace)))
    assert stores.jobs.namespaces() == ["Z", "team", "team-b", "team.c"]


def test_a_version_comes_back_whole_and_a_tombstone_empty(stores: Stores) -> None:
    head = put(stores, head_of(), version_of())
    deleted = head.changed(JobEvent.DELETED, at=NOW + SECOND, nonce="gone", version=2, plan_at=None)
    tombstone = JobVersion(JOB, 2, NOW + SECOND, "bob", None, None)
    assert stores.jobs.change(head, deleted, change_of(deleted, JobEvent.DELETED), tombstone, None)

    assert stores.jobs.version(JOB, 1) == version_of()
    assert stores.jobs.version(JOB, 2) == tombstone
    assert stores.jobs.version(JOB, 3) is None
    assert stores.jobs.version(key_of("report", "other"), 1) is None


def test_versions_are_listed_newest_first_by_number(stores: Stores) -> None:
    head = put(stores, head_of(), version_of())
    for number in range(2, 13):
        after = head.changed(JobEvent.PUT, at=NOW + number * SECOND, nonce=f"put-{number}", version=number)
        assert stores.jobs.change(head, after, change_of(after), version_of(number=number), None)
        head = after
    put(stores, head_of(key_of("report-2")), version_of(key_of("report-2"), 99))

    assert [version.number for version in stores.jobs.versions(JOB, limit=100)] == list(range(12, 0, -1))
    assert [version.number for version in stores.jobs.versions(JOB, limit=3)] == [12, 11, 10]
    assert [version.number for version in stores.jobs.versions(JOB, before=10, limit=2)] == [9, 8]
    assert stores.jobs.versions(JOB, before=1, limit=2) == []


def test_the_timeline_begins_with_the_change_that_was_in_force(stores: Stores) -> None:
    head = put(stores, head_of())
    changes = [change_of(head)]
    for n, event in enumerate([JobEvent.PAUSED, JobEvent.RESUMED, JobEvent.PUT], 1):
        after = head.changed(event, at=NOW + n * MINUTE, nonce=f"n{n}")
        changes.append(change_of(after, event))
        assert stores.jobs.change(head, after, changes[-1], None, None)
        head = after
    put(stores, head_of(key_of("report-2")))

    assert stores.jobs.timeline(JOB) == changes
    assert stores.jobs.timeline(JOB, since=NOW - HOUR) == changes
    assert stores.jobs.timeline(JOB, since=NOW) == changes
    assert stores.jobs.timeline(JOB, since=NOW + MINUTE - TICK) == changes
    assert stores.jobs.timeline(JOB, since=NOW + MINUTE) == changes[1:]
    assert stores.jobs.timeline(JOB, since=NOW + MINUTE + TICK) == changes[1:]
    assert stores.jobs.timeline(JOB, since=NOW + HOUR) == changes[3:]


def test_the_audit_log_has_every_change_of_every_job_of_a_namespace(stores: Stores) -> None:
    deeds = []
    for n, name in enumerate(["b", "a", "c"]):
        head = put(stores, head_of(key_of(name), changed_at=NOW + n * SECOND))
        deeds.append(deed_of(change_of(head), None, head))
    put(stores, head_of(key_of("a", "other")))
    assert stores.trail.deeds(DEFAULT, limit=10) == deeds[::-1]


def test_jobs_changed_in_one_instant_have_a_deed_each(stores: Stores) -> None:
    for name in ("a", "b"):
        put(stores, head_of(key_of(name)))
    assert [deed.subject for deed in stores.trail.deeds(DEFAULT, limit=10)] == ["jobs/b", "jobs/a"]


def changed(stores: Stores, head: Head, event: JobEvent) -> Head:
    after = head.changed(event, at=head.changed_at + SECOND, nonce=f"{head.rev + 1}")
    assert stores.jobs.change(head, after, change_of(after, event), None, None)
    return after


def test_jobs_are_counted_without_those_that_are_deleted(stores: Stores) -> None:
    heads = [put(stores, head_of(key_of(name))) for name in ("a", "a-b", "b", "c")]
    put(stores, head_of(key_of("a", "other")))
    put(stores, head_of(key_of("a", "default-2")))
    assert stores.jobs.count(DEFAULT) == 4

    changed(stores, heads[0], JobEvent.PAUSED)
    deleted = changed(stores, heads[1], JobEvent.DELETED)
    changed(stores, changed(stores, heads[2], JobEvent.PAUSED), JobEvent.DELETED)
    assert stores.jobs.count(DEFAULT) == 2
    assert len(stores.jobs.heads(DEFAULT, limit=10)) == 4

    changed(stores, deleted, JobEvent.PUT)
    assert stores.jobs.count(DEFAULT) == 3
    assert stores.jobs.count(Namespace("other")) == 1
    assert stores.jobs.count(Namespace("nobody")) == 0


def test_a_deletion_that_loses_or_is_repeated_counts_as_it_went(stores: Stores) -> None:
    head = put(stores, head_of())
    put(stores, head_of(key_of("b")))
    moved = advanced(head, "sweep")
    assert stores.jobs.advance([(head, moved)]) == [True]
    gone = head.changed(JobEvent.DELETED, at=NOW + SECOND, nonce="gone")
    assert not stores.jobs.change(head, gone, change_of(gone, JobEvent.DELETED), None, None)
    assert stores.jobs.count(DEFAULT) == 2

    gone = moved.changed(JobEvent.DELETED, at=NOW + SECOND, nonce="gone")
    for _ in range(2):
        assert stores.jobs.change(moved, gone, change_of(gone, JobEvent.DELETED), None, None)
        assert stores.jobs.count(DEFAULT) == 1
