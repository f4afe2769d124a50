"""The contract of `Views`: batches of rows, folded to the last known row of every run."""

from __future__ import annotations

from datetime import datetime
from itertools import count
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from sweephand.domain.ids import Namespace, run_id_of_fire
from sweephand.domain.reasons import Reason, ReasonCode
from sweephand.domain.run import Run, RunState, Trigger
from sweephand.domain.status import Standing, StatusRow, latest, listed, tally
from tests.contract.samples import DEFAULT, HOUR, MINUTE, NOW, SECOND, TICK, Window, claimed, key_of, run_at, status_row
from tests.contract.world import Stores

EVER = Window(since=NOW - 1000 * HOUR, until=NOW + 1000 * HOUR)


def rows(stores: Stores, since: datetime, until: datetime) -> list[StatusRow]:
    return stores.views.rows(DEFAULT, since=since, until=until)


def row_of(run: Run) -> StatusRow:
    row = listed(run)
    assert row is not None
    return row


def test_a_view_is_empty_until_something_is_appended(stores: Stores) -> None:
    stores.views.append(DEFAULT, "b0", [])
    assert stores.views.rows(DEFAULT, **EVER) == []


def test_every_field_of_a_row_comes_back(stores: Stores) -> None:
    run = claimed(run_at())
    failed = run.cancelled(Reason(ReasonCode.CANCELLED, "von Hand: ü"), now=NOW + HOUR, nonce="c")
    waiting = run_at(NOW + SECOND).parked(Reason(ReasonCode.PAUSED), now=NOW, nonce="p", wake_at=None)
    stores.views.append(DEFAULT, "b1", [row_of(failed), row_of(waiting)])
    assert stores.views.rows(DEFAULT, **EVER) == [row_of(waiting), row_of(failed)]


def test_the_newest_revision_of_a_run_counts_whatever_came_last(stores: Stores) -> None:
    run = run_at()
    stores.views.append(DEFAULT, "b1", [status_row(run, 1), status_row(run, 2)])
    stores.views.append(DEFAULT, "b2", [status_row(run, 5)])
    stores.views.append(DEFAULT, "b3", [status_row(run, 4)])
    assert stores.views.rows(DEFAULT, **EVER) == [status_row(run, 5)]


def test_the_same_batch_again_changes_nothing(stores: Stores) -> None:
    one, two = run_at(NOW), run_at(NOW + HOUR)
    for _ in range(2):
        stores.views.append(DEFAULT, "b1", [status_row(one, 2), status_row(two, 2)])
    assert stores.views.rows(DEFAULT, **EVER) == [status_row(two, 2), status_row(one, 2)]
    stores.views.append(DEFAULT, "b1", [status_row(one, 2), status_row(two, 3)])
    assert stores.views.rows(DEFAULT, **EVER) == [status_row(two, 3), status_row(one, 2)]


def test_rows_come_newest_first_from_a_window_that_excludes_its_end(stores: Stores) -> None:
    runs = [run_at(NOW + n * 20 * MINUTE, key_of(f"job-{n % 2}")) for n in range(-6, 7)]
    for n, run in enumerate(runs):
        stores.views.append(DEFAULT, f"b{n % 3}-{n}", [status_row(run)])
    assert stores.views.rows(DEFAULT, **EVER) == [status_row(run) for run in reversed(runs)]

    for since, until in ((NOW, NOW + HOUR), (NOW - HOUR, NOW), (NOW + SECOND, NOW + HOUR + SECOND), (NOW, NOW)):
        within = [status_row(run) for run in reversed(runs) if since <= run.fire_at < until]
        assert rows(stores, since, until) == within
    assert rows(stores, NOW + HOUR, NOW) == []


def test_runs_of_one_instant_are_all_there(stores: Stores) -> None:
    same = [status_row(run_at(job=key_of(f"job-{n}"))) for n in range(5)]
    stores.views.append(DEFAULT, "b1", same[:3])
    stores.views.append(DEFAULT, "b2", same[2:])
    assert rows(stores, NOW, NOW + SECOND) == latest(same)


def test_a_view_is_read_in_pages_that_meet_without_gap_or_overlap(stores: Stores) -> None:
    """Runs over days and hours, some of one instant, in several revisions of which only the last counts."""
    fires = [NOW + n * 25 * MINUTE for n in (-70, -69, -58, -57, -3, -2, -1, 0, 1, 2, 3, 60, 61)]
    runs = [run_at(fire, key_of(name)) for fire in fires for name in ("B", "a", "a-b")]
    runs += [run_at(run_id=f"{run_id_of_fire(NOW)}{suffix}", job=key_of("a")) for suffix in (".1", "-t0", "-t1")]
    for rev in (2, 4, 3, 1):
        for n in range(0, len(runs), 5):
            stores.views.append(DEFAULT, f"b{rev}-{n}", [status_row(run, rev) for run in runs[n : n + 5]])
    every = latest(status_row(run, 4) for run in runs)
    assert stores.views.rows(DEFAULT, **EVER) == every

    for limit in (1, 2, 7, len(every), len(every) + 1):
        found: list[StatusRow] = []
        while page := stores.views.rows(DEFAULT, **EVER, before=found[-1].run if found else None, limit=limit):
            assert len(page) == min(limit, len(every) - len(found))
            found += page
        assert found == every


def test_a_page_of_a_view_stays_within_its_window(stores: Stores) -> None:
    runs = [run_at(NOW + n * 20 * MINUTE) for n in range(-6, 7)]
    stores.views.append(DEFAULT, "b1", [status_row(run) for run in runs])
    newest_first = [status_row(run) for run in reversed(runs)]
    for since, until in ((NOW, NOW + HOUR), (NOW - HOUR, NOW + SECOND), (NOW - TICK, NOW + HOUR + TICK), (NOW, NOW)):
        within = [row for row in newest_first if since <= row.fire_at < until]
        for mark in newest_first:
            below = [row for row in within if row.run.run_id < mark.run.run_id]
            window = Window(since=since, until=until)
            assert stores.views.rows(DEFAULT, **window, before=mark.run) == below
            assert stores.views.rows(DEFAULT, **window, before=mark.run, limit=2) == below[:2]
        assert stores.views.rows(DEFAULT, since=since, until=until, limit=2) == within[:2]
        assert stores.views.rows(DEFAULT, since=since, until=until, limit=0) == []


def test_a_page_begins_below_a_place_that_nobody_has(stores: Stores) -> None:
    same = [status_row(run_at(job=key_of(name))) for name in ("b", "d")]
    stores.views.append(DEFAULT, "b1", same)
    for name, found in (("a", []), ("b", []), ("c", same[:1]), ("d", same[:1]), ("e", [same[1], same[0]])):
        for namespace in (DEFAULT, "other"):  # the place is within the view that is asked for
            assert stores.views.rows(DEFAULT, **EVER, before=run_at(job=key_of(name, namespace)).key) == found
    for at, found in ((NOW - 99 * HOUR, []), (NOW - SECOND, []), (NOW + SECOND, same[::-1]), (NOW + HOUR, same[::-1])):
        assert stores.views.rows(DEFAULT, **EVER, before=run_at(at).key) == found


def test_namespaces_have_views_of_their_own_and_are_cleared_alone(stores: Stores) -> None:
    other = Namespace("default2")
    mine, theirs = status_row(run_at()), status_row(run_at(job=key_of("report", other)))
    late = status_row(run_at(NOW + 30 * HOUR))
    stores.views.append(DEFAULT, "b1", [mine, late])
    stores.views.append(other, "b1", [theirs])
    assert stores.views.rows(other, **EVER) == [theirs]

    stores.views.clear(DEFAULT)
    assert stores.views.rows(DEFAULT, **EVER) == []
    assert stores.views.rows(other, **EVER) == [theirs]

    stores.views.append(DEFAULT, "b1", [mine])
    assert stores.views.rows(DEFAULT, **EVER) == [mine]


# How the runs of hours stand.


def row_at(at: datetime, state: str, rev: int = 1, **fields: Any) -> StatusRow:
    """The row of a run of a moment in a state."""
    job = key_of(fields.pop("job", "report"), fields.pop("namespace", DEFAULT))
    plain: dict[str, Any] = {"trigger": Trigger.SCHEDULE, "attempt": 0, "started_at": None, "ended_at": None}
    return StatusRow(run_at(at, job).key, rev, RunState(state), fire_at=at, **(plain | {"reason": None} | fields))


def standing(stores: Stores, since: datetime = NOW, until: datetime = NOW + HOUR, **more: Any) -> Standing:
    return stores.views.standing(DEFAULT, since=since, until=until, **({"late_before": NOW} | more))


def told(found: Standing) -> dict[int, dict[str, int]]:
    """Counts by how many hours after `NOW` an hour begins."""
    return {(at - NOW) // HOUR: {str(state): n for state, n in counts.items()} for at, counts in found.hours.items()}


def test_runs_are_counted_by_their_hour_and_by_the_state_that_is_known_last(stores: Stores) -> None:
    assert standing(stores) == Standing(NOW, {})
    for rev, states in enumerate(("queued queued queued", "running running failed", "succeeded retrying"), 1):
        rows = [row_at(NOW + n * 50 * MINUTE, state, rev) for n, state in enumerate(states.split())]
        for _ in range(2):
            stores.views.append(DEFAULT, f"b{rev}", rows)
    stores.views.append(DEFAULT, "late", [row_at(NOW, "queued", 1), row_at(NOW, "skipped", 9, job="other")])
    both = {0: {"succeeded": 1, "skipped": 1, "retrying": 1}, 1: {"failed": 1}}
    found = standing(stores, NOW - HOUR, NOW + 5 * HOUR)
    assert told(found) == both
    assert found.counts == {"succeeded": 1, "skipped": 1, "retrying": 1, "failed": 1}
    assert found.since == NOW - HOUR
    assert told(standing(stores, NOW + HOUR, NOW + 2 * HOUR)) == {1: both[1]}
    assert told(standing(stores, NOW - 2 * HOUR, NOW)) == {}
    stores.views.append(DEFAULT, "again", [row_at(NOW + 100 * MINUTE, "succeeded", 3)])
    assert told(standing(stores, NOW, NOW + 2 * HOUR)) == {0: both[0], 1: {"succeeded": 1}}


def test_standings_are_of_one_namespace_and_cleared_with_its_view(stores: Stores) -> None:
    theirs = [row_at(NOW, state, namespace="other", job=state) for state in ("failed", "queued")]
    stores.views.append(Namespace("other"), "b", theirs)
    stores.views.append(DEFAULT, "b", [row_at(NOW, "queued", job="a"), row_at(NOW + 30 * HOUR, "failed", job="a")])
    late = {"late_before": NOW + HOUR}
    assert (told(standing(stores, **late)), standing(stores, **late).late) == ({0: {"queued": 1}}, 1)
    stores.views.clear(Namespace("other"))
    assert told(standing(stores, NOW, NOW + 40 * HOUR)) == {0: {"queued": 1}, 30: {"failed": 1}}
    stores.views.clear(DEFAULT)
    assert standing(stores, NOW, NOW + 40 * HOUR, **late) == Standing(NOW, {})
    stores.views.append(DEFAULT, "b", [row_at(NOW, "failed", job="a")])
    assert told(standing(stores)) == {0: {"failed": 1}}


def test_late_is_what_waits_although_nobody_told_it_to(stores: Stores) -> None:
    waits = (("pool", "pool: full"), ("worker", "worker: nobody pulls"), ("nothing", None), ("overlap", "overlap"))
    held = ("paused", "blackout: held until 07:00", "not_yet: due later", "resuming", "waiting", "approval: asked")
    rows = [row_at(NOW + n * MINUTE, "queued", reason=why, job=name) for n, (name, why) in enumerate(waits)]
    rows += [row_at(NOW, "queued", reason=reason, job=f"held-{n}") for n, reason in enumerate(held)]
    rows += [row_at(NOW, "queued", trigger=Trigger(made), job=made) for made in ("backfill", "rerun")]
    rows += [row_at(NOW, "queued", started_at=NOW, job="taken-over"), row_at(NOW, "retrying", job="tried")]
    rows += [row_at(NOW + 4 * MINUTE, "queued", trigger=Trigger.MANUAL, job="by-hand")]
    stores.views.append(DEFAULT, "b", rows)
    every = standing(stores, late_before=NOW + HOUR)
    assert (every.late, every.late_since) == (5, NOW)
    some = standing(stores, late_before=NOW + 2 * MINUTE)
    assert (some.late, some.late_since) == (2, NOW)
    assert (standing(stores, late_before=NOW).late, standing(stores, late_before=NOW).late_since) == (0, None)
    later = standing(stores, NOW + HOUR, NOW + 2 * HOUR, late_before=NOW + HOUR)
    assert (later.late, later.late_since) == (0, None)
    paused = row_at(NOW + MINUTE, "queued", 2, job="worker", reason="paused")
    stores.views.append(DEFAULT, "c", [row_at(NOW, "running", 2, job="pool"), paused])
    left = standing(stores, late_before=NOW + HOUR)
    assert (left.late, left.late_since) == (3, NOW + 2 * MINUTE)


def row_of_a_life(n: int, rev: int) -> StatusRow:
    """A run at a revision, of which there is one only."""
    states = ("queued", "running", "queued", "succeeded", "failed", "skipped")
    reason = (None, "pool", "paused: by hand")[(n + rev) % 3]
    return row_at(NOW + n * 25 * MINUTE, states[(n + rev) % 6], rev, reason=reason, job=f"job-{n % 3}")


def test_whatever_comes_in_whatever_order_hours_are_counted_as_their_rows_are(
    stores: Stores, examples: settings
) -> None:
    batches = st.lists(st.lists(st.builds(row_of_a_life, st.integers(0, 9), st.integers(0, 9)), max_size=4), max_size=6)
    number = count()

    @examples
    @given(batches=batches)
    def check(batches: list[list[StatusRow]]) -> None:
        stores.views.clear(DEFAULT)
        for batch in batches:
            stores.views.append(DEFAULT, f"b{next(number)}", batch)
        every = stores.views.rows(DEFAULT, since=NOW, until=NOW + 9 * HOUR)
        found = standing(stores, NOW, NOW + 9 * HOUR, late_before=NOW + 2 * HOUR)
        hours = {row.fire_at.replace(minute=0) for row in every}
        assert found.hours == {at: tally(row for row in every if row.fire_at.replace(minute=0) == at) for at in hours}
        late = [row.fire_at for row in every if row.is_kept_waiting and row.fire_at < NOW + 2 * HOUR]
        assert (found.late, found.late_since) == (len(late), min(late, default=None))

    check()
