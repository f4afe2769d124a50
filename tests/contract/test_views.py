"""The contract of `Views`: batches of rows, folded to the last known row of every run."""

from __future__ import annotations

from datetime import datetime

from sweephand.domain.ids import Namespace, run_id_of_fire
from sweephand.domain.reasons import Reason, ReasonCode
from sweephand.domain.run import Run
from sweephand.domain.status import StatusRow, latest, listed
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
