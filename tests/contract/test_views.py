"""The contract of `Views`: batches of rows, folded to the last known row of every run."""

from __future__ import annotations

from datetime import datetime

from sweephand.domain.ids import Namespace
from sweephand.domain.reasons import Reason, ReasonCode
from sweephand.domain.run import Run
from sweephand.domain.status import StatusRow, latest, listed
from tests.contract.samples import DEFAULT, HOUR, MINUTE, NOW, SECOND, claimed, key_of, run_at, status_row
from tests.contract.world import Stores

EVER = {"since": NOW - 1000 * HOUR, "until": NOW + 1000 * HOUR}


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
