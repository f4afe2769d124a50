"""Which days are open."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta

import pytest

from sweephand.domain.calendars import DATES_MAX, Calendar, CalendarHistory
from sweephand.errors import InvalidInput

BUSINESS = Calendar(
    id="business-days",
    timezone="Europe/Berlin",
    closed=frozenset({date(2026, 12, 25)}),
    opened=frozenset({date(2026, 12, 19)}),
)


@pytest.mark.parametrize(
    ("fire_at", "reason"),
    [
        ("2026-12-24T12:00:00", None),
        ("2026-12-25T12:00:00", "2026-12-25 is closed in calendar business-days"),
        ("2026-12-26T12:00:00", "2026-12-26 is a Saturday, which is closed in calendar business-days"),
        ("2026-12-19T12:00:00", None),  # a Saturday, opened
        ("2026-12-24T23:30:00", "2026-12-25 is closed in calendar business-days"),  # 00:30 in Berlin
        ("2026-12-20T23:30:00", None),  # Monday in Berlin, Sunday in UTC
    ],
)
def test_the_local_day_decides(fire_at: str, reason: str | None) -> None:
    assert BUSINESS.refuses(datetime.fromisoformat(fire_at).replace(tzinfo=UTC)) == reason


def test_a_change_takes_effect_at_its_instant() -> None:
    first, second = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 6, 1, tzinfo=UTC)
    changed = Calendar(id="business-days", closed=frozenset({date(2026, 6, 5)}))
    history = CalendarHistory().with_version(first, BUSINESS).with_version(second, changed)
    assert history.at(first - timedelta(seconds=1)) is None
    assert history.at(first) is BUSINESS
    assert history.at(second - timedelta(seconds=1)) is BUSINESS
    assert history.at(second) is changed
    # A change of plan before the last one began replaces it.
    assert history.with_version(second, BUSINESS).versions == ((first, BUSINESS), (second, BUSINESS))


def test_calendars_survive_storage() -> None:
    history = CalendarHistory(((datetime(2026, 1, 1, tzinfo=UTC), BUSINESS),))
    assert CalendarHistory.decode(json.loads(json.dumps(history.encode()))) == history
    assert Calendar.parse(BUSINESS.encode(), id="business-days") == BUSINESS


def test_the_defaults_are_monday_to_friday_in_utc() -> None:
    parsed = Calendar.parse({}, id="x")
    assert parsed == Calendar(id="x")
    assert sorted(parsed.weekdays) == ["fri", "mon", "thu", "tue", "wed"]


@pytest.mark.parametrize(
    ("document", "path"),
    [
        ([], "calendar"),
        ("mon-fri", "calendar"),
        ({"holidays": []}, "calendar.holidays"),
        ({"id": "other"}, "calendar.id"),
        ({"timezone": "Europe/Berln"}, "calendar.timezone"),
        ({"timezone": 5}, "calendar.timezone"),
        ({"weekdays": "mon"}, "calendar.weekdays"),
        ({"weekdays": ["monday"]}, "calendar.weekdays"),
        ({"weekdays": [["mon"]]}, "calendar.weekdays"),
        ({"closed": "2026-12-25"}, "calendar.closed"),
        ({"closed": ["2026-12-25", "2026-02-30"]}, "calendar.closed[1]"),
        ({"closed": ["20261225"]}, "calendar.closed[0]"),
        ({"closed": ["2026-W52-1"]}, "calendar.closed[0]"),
        ({"closed": [20261225]}, "calendar.closed[0]"),
        ({"opened": [datetime(2026, 12, 25, tzinfo=UTC)]}, "calendar.opened[0]"),
        ({"closed": ["2026-12-25"], "opened": ["2026-12-25"]}, "calendar.opened"),
        ({"closed": ["2026-12-25"] * (DATES_MAX + 1)}, "calendar.closed"),
    ],
)
def test_a_wrong_document_is_refused_at_its_field(document: object, path: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        Calendar.parse(document, id="business-days", path="calendar")
    assert refused.value.path == path


def test_closed_and_opened_share_one_limit() -> None:
    days = [(date(2000, 1, 1) + timedelta(days=n)).isoformat() for n in range(DATES_MAX + 1)]
    assert len(Calendar.parse({"closed": days[:-1]}, id="x").closed) == DATES_MAX
    with pytest.raises(InvalidInput, match="at most"):
        Calendar.parse({"closed": days[:-1], "opened": days[-1:]}, id="x")


def test_a_wrong_zone_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(InvalidInput, match="Europe/Berlin"):
        Calendar.parse({"timezone": "Europe/Berln"}, id="x")
