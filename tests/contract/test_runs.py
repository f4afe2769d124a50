"""The contract of `Runs`: identity is written once, everything else moves by compare-and-set."""

from __future__ import annotations

from datetime import date, timedelta
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from sweephand.domain.ids import Namespace, RunId, RunKey, run_id_of_fire, run_id_of_rerun, run_id_of_trigger
from sweephand.domain.ledger import Dropped, FireStatus, LedgerPage
from sweephand.domain.reasons import Reason, ReasonCode
from sweephand.domain.run import Run, RunState
from tests.contract.samples import (
    DEFAULT,
    HOUR,
    JOB,
    MINUTE,
    NOW,
    SECOND,
    TICK,
    claimed,
    key_of,
    moved,
    run_at,
    runs,
)
from tests.contract.world import Stores, VirtualClock

IDENTITY = (
    *("fire_at", "start_at", "trigger", "created_at", "params", "rerun_of", "rerun_from", "parent", "note"),
    *("backfill", "interval_start", "marks"),
)


def test_every_field_of_a_run_comes_back(stores: Stores, examples: settings) -> None:
    @examples
    @given(run=runs())
    def check(run: Run) -> None:
        assert stores.runs.create([run]) == [True]
        assert stores.runs.get(run.key) == run
        assert stores.runs.of_job(run.key.job, limit=10) == [run]

    check()


def test_a_move_writes_every_field_but_the_identity(stores: Stores, examples: settings) -> None:
    @examples
    @given(data=st.data(), before=runs())
    def check(data: st.DataObject, before: Run) -> None:
        stores.runs.create([before])
        after = data.draw(moved(before))
        assert stores.runs.move(before, after)
        kept = {name: getattr(before, name) for name in IDENTITY}
        assert stores.runs.get(before.key) == replace(after, **kept)

    check()


def test_a_run_that_was_never_created_is_absent_and_cannot_move(stores: Stores) -> None:
    run = run_at()
    assert stores.runs.get(run.key) is None
    assert not stores.runs.move(run, claimed(run))
    assert stores.runs.get(run.key) is None


def test_of_two_creations_of_one_fire_one_wins(stores: Stores) -> None:
    first, second = run_at(nonce="a"), run_at(nonce="b", params={"late": True})
    assert stores.runs.create([first]) == [True]
    assert stores.runs.create([second]) == [False]
    assert stores.runs.get(first.key) == first


def test_each_creation_answers_for_itself(stores: Stores) -> None:
    known = run_at()
    stores.runs.create([known])
    others = [run_at(NOW + n * MINUTE) for n in range(1, 30)]
    answers = stores.runs.create([others[0], replace(known, nonce="other"), *others[1:]])
    assert answers == [True, False, *[True] * 28]
    assert stores.runs.of_job(JOB, newest_first=False, limit=100) == [known, *others]
    assert stores.runs.create([]) == []


def test_a_repeated_creation_is_recognised_by_its_nonce_until_the_run_moves(stores: Stores) -> None:
    run = run_at()
    assert stores.runs.create([run]) == [True]
    assert stores.runs.create([run]) == [True]
    assert stores.runs.move(run, claimed(run))
    assert stores.runs.create([run]) == [False]
    assert stores.runs.get(run.key) == claimed(run)


def test_an_empty_nonce_is_nobodys(stores: Stores) -> None:
    run = run_at(nonce="")
    assert stores.runs.create([run]) == [True]
    assert stores.runs.create([run]) == [False]
    assert stores.runs.move(run, claimed(run, ""))
    assert not stores.runs.move(run, claimed(run, ""))


def test_of_two_claims_of_one_run_one_wins(stores: Stores) -> None:
    run = run_at()
    stores.runs.create([run])
    mine, other = claimed(run, "a", owner="w1"), claimed(run, "b", owner="w2")
    assert stores.runs.move(run, mine)
    assert not stores.runs.move(run, other)
    assert stores.runs.get(run.key) == mine


def test_a_repeated_move_is_recognised_by_its_nonce_until_the_run_moves_on(stores: Stores) -> None:
    run = run_at()
    stores.runs.create([run])
    mine = claimed(run)
    done = mine.succeeded(now=NOW + MINUTE, nonce="done", output={"rows": 3})
    assert stores.runs.move(run, mine)
    assert stores.runs.move(run, mine)
    assert stores.runs.move(mine, done)
    assert stores.runs.move(mine, done)
    assert not stores.runs.move(run, mine)
    assert stores.runs.get(run.key) == done


def test_a_stale_worker_cannot_complete_what_was_reclaimed(stores: Stores) -> None:
    run = run_at()
    stores.runs.create([run])
    stale = claimed(run, "a", owner="w1")
    stores.runs.move(run, stale)
    fresh = claimed(stale, "b", owner="w2")
    assert stores.runs.move(stale, fresh)
    assert not stores.runs.move(stale, stale.succeeded(now=NOW + MINUTE, nonce="late", output=1))
    found = stores.runs.get(run.key)
    assert found == fresh
    assert found is not None
    assert found.epoch == 2


def test_runs_of_other_jobs_and_namespaces_are_other_runs(stores: Stores) -> None:
    same_fire = [run_at(job=key) for key in (JOB, key_of("report-2"), key_of("report", "other"))]
    assert stores.runs.create(same_fire) == [True, True, True]
    assert stores.runs.move(same_fire[0], claimed(same_fire[0]))
    assert stores.runs.get(same_fire[1].key) == same_fire[1]
    assert stores.runs.of_job(JOB, limit=10) == [claimed(same_fire[0])]
    assert stores.runs.of_job(key_of("rep"), limit=10) == []


def _history(stores: Stores) -> list[RunId]:
    """Scheduled runs, a rerun and a trigger, written in no particular order."""
    first = run_id_of_fire(NOW)
    ids = [run_id_of_fire(NOW + n * SECOND) for n in range(5)]
    ids += [
        run_id_of_rerun(first, 1),
        run_id_of_rerun(first, 2),
        run_id_of_trigger(NOW, "0A"),
        run_id_of_trigger(NOW, "b"),
    ]
    stores.runs.create([run_at(run_id=run_id) for run_id in ids[::2] + ids[1::2]])
    return sorted(ids)


def _ids(found: list[Run]) -> list[RunId]:
    return [run.key.run_id for run in found]


def test_runs_of_a_job_are_listed_by_id_either_way(stores: Stores) -> None:
    ids = _history(stores)
    assert _ids(stores.runs.of_job(JOB, limit=100)) == ids[::-1]
    assert _ids(stores.runs.of_job(JOB, newest_first=False, limit=100)) == ids
    assert _ids(stores.runs.of_job(JOB, limit=3)) == ids[::-1][:3]
    assert _ids(stores.runs.of_job(JOB, newest_first=False, limit=3)) == ids[:3]


def test_the_bounds_of_a_list_include_its_beginning_and_not_its_end(stores: Stores) -> None:
    ids = _history(stores)
    for low, high in pairwise([ids[0], ids[2], ids[5], ids[8]]):
        within = [one for one in ids if low <= one < high]
        assert _ids(stores.runs.of_job(JOB, since=low, until=high, newest_first=False, limit=100)) == within
        assert _ids(stores.runs.of_job(JOB, since=low, until=high, limit=100)) == within[::-1]
        assert _ids(stores.runs.of_job(JOB, since=low, until=high, limit=1)) == within[-1:]
    assert _ids(stores.runs.of_job(JOB, until=ids[4], limit=100)) == ids[:4][::-1]
    assert _ids(stores.runs.of_job(JOB, since=ids[4], limit=100)) == ids[4:][::-1]
    assert stores.runs.of_job(JOB, since=ids[3], until=ids[3], limit=100) == []
    assert stores.runs.of_job(JOB, since=ids[4], until=ids[3], limit=100) == []


def test_pages_of_a_list_meet_without_gap_or_overlap(stores: Stores) -> None:
    ids = _history(stores)
    newest_first: list[RunId] = []
    while page := stores.runs.of_job(JOB, until=newest_first[-1] if newest_first else None, limit=2):
        newest_first += _ids(page)
    assert newest_first == ids[::-1]
    oldest_first: list[RunId] = []
    since: RunId | None = None
    while page := stores.runs.of_job(JOB, since=since, newest_first=False, limit=2):
        oldest_first += _ids(page)
        since = RunId(oldest_first[-1] + "!")
    assert oldest_first == ids


def test_active_runs_are_those_that_run_or_will_again(stores: Stores) -> None:
    every = [run_at(NOW + n * SECOND, state=state) for n, state in enumerate([*RunState, *RunState])]
    others = [run_at(job=key, state=RunState.RUNNING) for key in (key_of("report-2"), key_of("report", "other"))]
    stores.runs.create([*every, *others])
    active = [run for run in reversed(every) if run.state in (RunState.RUNNING, RunState.RETRYING)]
    assert len(active) == 4
    assert stores.runs.active(JOB, until=run_id_of_fire(NOW + HOUR)) == active
    for n, run in enumerate(active):
        assert stores.runs.active(JOB, until=run.key.run_id) == active[n + 1 :]
    assert stores.runs.active(key_of("rep"), until=run_id_of_fire(NOW + HOUR)) == []


def test_a_run_is_active_from_its_claim_to_its_end(stores: Stores) -> None:
    run, until = run_at(), run_id_of_fire(NOW + SECOND)
    running = claimed(run)
    done = running.succeeded(now=NOW + MINUTE, nonce="done", output=None)
    stores.runs.create([run])
    assert stores.runs.active(JOB, until=until) == []
    stores.runs.move(run, running)
    assert stores.runs.active(JOB, until=until) == [running]
    stores.runs.move(running, done)
    assert stores.runs.active(JOB, until=until) == []


def test_at_most_a_hundred_runs_are_active_and_planned_ones_hide_none(stores: Stores) -> None:
    running = [run_at(NOW + n * SECOND, state=RunState.RUNNING) for n in range(110)]
    planned = [run_at(NOW + HOUR + n * SECOND) for n in range(110)]
    stores.runs.create([*running, *planned])
    assert stores.runs.active(JOB, until=planned[0].key.run_id) == running[:9:-1]


def test_the_newest_and_the_active_runs_of_many_jobs_are_read_together(stores: Stores) -> None:
    jobs = [key_of(f"job-{n}") for n in range(20)]
    for n, job in enumerate(jobs):
        states = ("retrying", "succeeded", "void", "queued", "running", "planned")[: n % 7]
        stores.runs.create([run_at(NOW + m * SECOND, job, state=RunState(one)) for m, one in enumerate(states)])
    until = run_id_of_fire(NOW + 5 * SECOND)
    asked = [*reversed(jobs), key_of("nobody"), jobs[6], key_of("job-6", "other")]
    found = stores.runs.recent(asked, until=until, limit=2)
    assert len(found) == len(asked)
    for job, recent in zip(asked, found, strict=True):
        every = stores.runs.of_job(job, until=until, limit=100)
        shown = [run for run in every if run.state not in (RunState.PLANNED, RunState.VOID)]
        assert recent.listed == shown[:2]
        assert recent.active == stores.runs.active(job, until=until)
    assert [len(one.listed) for one in found[-3:]] == [0, 2, 0]
    assert [one.listed for one in stores.runs.recent(jobs[:1], until=until, limit=0)] == [[]]
    assert stores.runs.recent([], until=until, limit=2) == []


def test_what_lists_do_not_show_hides_none_of_what_they_do(stores: Stores) -> None:
    runs = [run_at(NOW + n * SECOND, state=RunState.SKIPPED if n < 3 else RunState.VOID) for n in range(102)]
    stores.runs.create(runs)
    (recent,) = stores.runs.recent([JOB], until=run_id_of_fire(NOW + HOUR), limit=10)
    assert recent.listed[0] == runs[2]
    assert recent.active == []


def test_ledger_rows_are_not_runs(stores: Stores) -> None:
    stores.runs.drop(JOB, _stretch(0, 5))
    stores.runs.write_page(_page(date(2026, 11, 15)))
    assert stores.runs.of_job(JOB, limit=10) == []


def _stretch(first: int, last: int, reason: str = "the policy is 'none': ünd so") -> Dropped:
    return Dropped(NOW + first * MINUTE, NOW + last * MINUTE, last - first + 1, Reason(ReasonCode.CATCHUP, reason))


def test_stretches_that_touch_a_window_are_found(stores: Stores) -> None:
    stretches = [_stretch(0, 9), _stretch(20, 20), _stretch(30, 90)]
    for stretch in reversed(stretches):
        stores.runs.drop(JOB, stretch)
    stores.runs.drop(key_of("other"), _stretch(0, 100))

    def found(since: timedelta, until: timedelta) -> list[Dropped]:
        return stores.runs.dropped(JOB, since=NOW + since, until=NOW + until)

    assert found(timedelta(0), 2 * HOUR) == stretches
    assert found(-HOUR, timedelta(0)) == []
    assert found(-HOUR, TICK) == stretches[:1]
    assert found(9 * MINUTE, 10 * MINUTE) == stretches[:1]
    assert found(9 * MINUTE + TICK, 20 * MINUTE) == []
    assert found(20 * MINUTE, 20 * MINUTE + TICK) == stretches[1:2]
    assert found(40 * MINUTE, 50 * MINUTE) == stretches[2:]
    assert found(90 * MINUTE + TICK, 3 * HOUR) == []


def test_the_same_beginning_again_replaces_a_stretch_and_never_shortens_it(stores: Stores) -> None:
    for stretch in (_stretch(0, 4), _stretch(0, 4, "again"), _stretch(0, 9, "more"), _stretch(0, 6, "late")):
        stores.runs.drop(JOB, stretch)
    assert stores.runs.dropped(JOB, since=NOW, until=NOW + HOUR) == [_stretch(0, 9, "more")]


def _page(day: date, **fields: object) -> LedgerPage:
    page = LedgerPage(
        JOB,
        day,
        NOW + TICK,
        "2026b",
        {FireStatus.FIRED: 1439, FireStatus.MISSING: 1},
        (NOW, NOW + MINUTE),
        (RunId("20261115T060000Z"),),
    )
    return replace(page, **fields)


def test_pages_of_the_days_that_a_window_touches_are_found(stores: Stores) -> None:
    days = [date(2026, 11, day) for day in (13, 14, 15, 16)]
    pages = [_page(day) for day in days]
    for page in reversed(pages):
        stores.runs.write_page(page)
    stores.runs.write_page(_page(days[1], job=key_of("other")))
    midnight = NOW - 6 * HOUR  # of the 15th

    assert stores.runs.pages(JOB, since=NOW - 100 * HOUR, until=NOW + 100 * HOUR) == pages
    assert stores.runs.pages(JOB, since=midnight, until=midnight + 24 * HOUR) == pages[2:3]
    assert stores.runs.pages(JOB, since=midnight - TICK, until=midnight + TICK) == pages[1:3]
    assert stores.runs.pages(JOB, since=NOW, until=NOW + SECOND) == pages[2:3]
    assert stores.runs.pages(JOB, since=midnight + 48 * HOUR, until=NOW + 100 * HOUR) == []


def test_a_page_written_again_replaces_the_first(stores: Stores) -> None:
    stores.runs.write_page(_page(date(2026, 11, 15)))
    clean = _page(date(2026, 11, 15), counts={}, missing=(), extra=())
    stores.runs.write_page(clean)
    assert stores.runs.pages(JOB, since=NOW, until=NOW + SECOND) == [clean]


def test_the_value_first_remembered_stays_until_its_end(stores: Stores, clock: VirtualClock) -> None:
    key = "trigger/report/Ключ 1"
    assert stores.runs.remember(DEFAULT, key, "first", until=NOW + HOUR) == "first"
    assert stores.runs.remember(DEFAULT, key, "second", until=NOW + 9 * HOUR) == "first"
    clock.advance(HOUR - SECOND)
    assert stores.runs.remember(DEFAULT, key, "third", until=NOW + 9 * HOUR) == "first"
    clock.advance(2 * SECOND)
    assert stores.runs.remember(DEFAULT, key, "fourth", until=NOW + 9 * HOUR) == "fourth"
    assert stores.runs.remember(DEFAULT, key, "fifth", until=NOW + 9 * HOUR) == "fourth"


def test_what_is_noted_replaces_what_was_until_its_end(stores: Stores, clock: VirtualClock) -> None:
    assert stores.runs.noted(DEFAULT, "cache/k") is None
    stores.runs.note(DEFAULT, "cache/k", "first", until=NOW + HOUR)
    stores.runs.note(DEFAULT, "cache/k", "second", until=NOW + 2 * HOUR)
    assert stores.runs.noted(DEFAULT, "cache/k") == "second"
    assert stores.runs.noted(Namespace("other"), "cache/k") is None
    clock.advance(2 * HOUR)
    assert stores.runs.noted(DEFAULT, "cache/k") == "second"
    clock.advance(SECOND)
    assert stores.runs.noted(DEFAULT, "cache/k") is None
    stores.runs.note(DEFAULT, "cache/k", "third", until=NOW + 9 * HOUR)
    assert stores.runs.noted(DEFAULT, "cache/k") == "third"


def test_keys_are_remembered_per_namespace(stores: Stores) -> None:
    assert stores.runs.remember(DEFAULT, "k", "a", until=NOW + HOUR) == "a"
    assert stores.runs.remember(Namespace("other"), "k", "b", until=NOW + HOUR) == "b"
    assert stores.runs.remember(DEFAULT, "K", "c", until=NOW + HOUR) == "c"


def test_a_state_of_every_kind_is_read_back_as_itself(stores: Stores) -> None:
    for n, state in enumerate(RunState):
        run = run_at(NOW + n * SECOND, state=state)
        stores.runs.create([run])
        found = stores.runs.get(RunKey(JOB, run.key.run_id))
        assert found is not None
        assert found.state is state
