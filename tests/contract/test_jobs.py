"""The contract of `Jobs`: heads move by compare-and-set, versions and changes are written once."""

from __future__ import annotations

from hypothesis import given, settings
from msgspec.structs import replace

from sweephand.domain.definition import document_of, parse
from sweephand.domain.ids import JobName, Namespace
from sweephand.domain.job import CatchupPolicy, Head, JobEvent, JobStatus, JobVersion
from sweephand.domain.trail import deed_of
from sweephand.domain.words import folded
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

JOB_CALLED_JOB = key_of("job")


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


# Finding jobs.


def put_with(stores: Stores, name: str, namespace: str = DEFAULT, **fields: object) -> Head:
    key = key_of(name, namespace)
    document = document_of({"name": name, "command": "x", **fields})
    version = JobVersion(key, 1, NOW, "ada", document, parse(document, namespace=Namespace(namespace), now=NOW))
    return put(stores, head_of(key), version)


def sought(stores: Stores, words: str) -> list[str]:
    found = stores.jobs.sought(DEFAULT, folded(words), limit=100)
    assert found.reached is None
    return [head.key.name for head in found.heads]


def test_jobs_are_found_by_a_part_of_their_name_their_tags_or_their_description(stores: Stores) -> None:
    put_with(stores, "Daily-Report", tags=["Finance", "eu"], description="Umsatz ÜBER alles\nund mehr")
    put_with(stores, "nightly", tags=["Straße"], description="x" * 299 + "yz")
    put_with(stores, "daily-report", "other", tags=["finance"])
    put(stores, head_of(key_of("plain-daily")))
    assert sought(stores, "DAILY") == ["Daily-Report", "plain-daily"]
    assert sought(stores, "finan") == sought(stores, "über") == sought(stores, "U\u0308BER") == ["Daily-Report"]
    assert sought(stores, "alles und mehr") == ["Daily-Report"]
    assert sought(stores, "xy") == sought(stores, "STRASSE") == ["nightly"]
    for nothing in ("yz", "finance eu", "report\nfinance-", "%", "_", "daily_report", "dailyreport"):
        assert sought(stores, nothing) == [], nothing


def test_what_a_job_is_found_by_is_what_its_version_in_force_says(stores: Stores) -> None:
    first = put_with(stores, "job", tags=["old"])
    document = document_of({"name": "job", "command": "x", "tags": ["new"]})
    second = first.changed(JobEvent.PUT, at=NOW + SECOND, nonce="2", version=2)
    version = JobVersion(JOB_CALLED_JOB, 2, NOW, "ada", document, parse(document, namespace=DEFAULT, now=NOW))
    assert stores.jobs.change(first, second, change_of(second), version, None)
    assert (sought(stores, "old"), sought(stores, "new")) == ([], ["job"])
    rival = first.changed(JobEvent.PUT, at=NOW + 2 * SECOND, nonce="3", version=2)
    lost = parse({**document, "tags": ["lost"]}, namespace=DEFAULT, now=NOW)
    stale = JobVersion(JOB_CALLED_JOB, 2, NOW, "ada", document, lost)
    assert not stores.jobs.change(first, rival, change_of(rival), stale, None)
    assert (sought(stores, "lost"), sought(stores, "new")) == ([], ["job"])

    paused = second.changed(JobEvent.PAUSED, at=NOW + 3 * SECOND, nonce="4")
    assert stores.jobs.change(second, paused, change_of(paused, JobEvent.PAUSED), None, None)
    assert sought(stores, "new") == ["job"]
    gone = paused.changed(JobEvent.DELETED, at=NOW + 4 * SECOND, nonce="5", version=3)
    tombstone = JobVersion(JOB_CALLED_JOB, 3, NOW, "ada", None, None)
    assert stores.jobs.change(paused, gone, change_of(gone, JobEvent.DELETED), tombstone, None)
    assert (sought(stores, "new"), sought(stores, "job")) == ([], ["job"])
    assert stores.jobs.count(DEFAULT) == 0


def test_a_search_stops_after_so_many_jobs_and_goes_on_behind_the_last(stores: Stores) -> None:
    for n in range(12):
        put_with(stores, f"job-{n:02}", tags=["odd"] if n % 2 else ["even", "third"][: 1 + (n % 3 == 0)])

    def pages(words: str, limit: int, looked_at_max: int) -> list[list[str]]:
        found: list[list[str]] = []
        reached: JobName | None = None
        while not found or reached is not None:
            one = stores.jobs.sought(DEFAULT, words, after=reached, limit=limit, looked_at_max=looked_at_max)
            found.append([head.key.name[-2:] for head in one.heads])
            reached = one.reached
        return found

    assert pages("third", 10, 4) == [["00"], ["06"], []]
    assert pages("odd", 10, 6) == [["01", "03", "05"], ["07", "09", "11"]]
    assert pages("odd", 2, 100) == [["01", "03"], ["05", "07"], ["09", "11"]]
    assert pages("odd", 4, 5) == [["01", "03"], ["05", "07", "09"], ["11"]]
    assert pages("none", 10, 12) == [[]]
    assert pages("none", 10, 11) == [[], []]


def test_the_jobs_that_may_fire_first_come_first(stores: Stores) -> None:
    now, upto = NOW + MINUTE, NOW + HOUR
    cursors = {
        "planned": (now + SECOND, NOW + 9 * HOUR),
        "late": (NOW, NOW),
        "b-soon": (now, now + MINUTE),
        "a-soon": (NOW, now + MINUTE),
        "at-the-end": (NOW, upto),
        "too-late": (now, upto + SECOND),
        "never": (now, None),
        "one-shot": (now + TICK, None),
        "paused": (now + HOUR, now),
        "gone": (now + HOUR, now),
    }
    for name, (planned_upto, plan_at) in cursors.items():
        status = JobStatus.PAUSED if name == "paused" else JobStatus.DELETED if name == "gone" else JobStatus.ACTIVE
        put(stores, head_of(key_of(name), planned_upto=planned_upto, plan_at=plan_at, status=status))
    put(stores, head_of(key_of("elsewhere", "other"), plan_at=now))
    expected = ["late", "one-shot", "planned", "a-soon", "b-soon", "at-the-end"]
    found = stores.jobs.soonest(DEFAULT, now=now, upto=upto, limit=100)
    assert [head.key.name for head in found.heads] == expected
    assert found.is_whole
    assert found.heads[0] == stores.jobs.head(key_of("late"))
    for limit in (1, 4):
        fewer = stores.jobs.soonest(DEFAULT, now=now, upto=upto, limit=limit)
        assert [head.key.name for head in fewer.heads] == expected[:limit]
        assert fewer.is_whole
    assert stores.jobs.soonest(Namespace("nobody"), now=now, upto=upto, limit=9).heads == []


def test_versions_of_many_jobs_are_read_together(stores: Stores) -> None:
    keys = [key_of(f"job-{n:03}") for n in range(105)]
    versions = [version_of(key) for key in keys]
    for key, version in zip(keys, versions, strict=True):
        put(stores, head_of(key), version)
    wanted = [(key, 1) for key in keys] + [(keys[0], 1), (keys[0], 2), (key_of("absent"), 1)]
    found = stores.jobs.each_version(wanted)
    assert {one.key: one for one in found} == {one.key: one for one in versions}
    assert stores.jobs.each_version([]) == []


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
