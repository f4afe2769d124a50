"""What people see, and what programs get."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from sweephand.cli.show import Output, at, field, local, shown, visible

ROWS: list[dict[str, Any]] = [
    {"jobId": "report", "status": "active", "nextFireAt": "2026-11-16T06:00:00Z", "tags": ["a", "b"]},
    {"jobId": "x", "status": "paused", "nextFireAt": None, "tags": []},
]
COLUMNS = (field("jobId", "JOB"), field("status"), at("nextFireAt", "NEXT FIRE"), field("tags"))


def output(*, as_json: bool = False, is_terminal: bool = False) -> tuple[Output, io.StringIO]:
    file = io.StringIO()
    return Output(file, as_json=as_json, is_terminal=is_terminal), file


def test_a_table_in_a_pipe_is_plain_columns() -> None:
    out, file = output()
    out.rows(ROWS, COLUMNS, none="none")
    assert file.getvalue() == (
        "JOB     STATUS  NEXT FIRE                   TAGS\n"
        "report  active  2026-11-16 06:00:00 +00:00  a, b\n"
        "x       paused  -                           -\n"
    )


def test_a_table_on_a_terminal_has_colours_unless_no_color_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.delenv("NO_COLOR", raising=False)
    out, file = output(is_terminal=True)
    out.rows(ROWS, COLUMNS, none="none")
    assert "\x1b[32mactive" in file.getvalue()
    monkeypatch.setenv("NO_COLOR", "1")
    out, file = output(is_terminal=True)
    out.rows(ROWS, COLUMNS, none="none")
    assert "report" in file.getvalue()
    assert "\x1b[3" not in file.getvalue()


def test_for_programs_a_list_is_one_array_even_an_empty_one() -> None:
    out, file = output(as_json=True)
    out.rows(ROWS, COLUMNS, none="none")
    out.say("a word for people")
    assert json.loads(file.getvalue()) == ROWS
    out, file = output(as_json=True)
    out.rows([], COLUMNS, none="none")
    assert json.loads(file.getvalue()) == []


def test_an_empty_list_says_so() -> None:
    out, file = output()
    out.rows([], COLUMNS, none="There are none.")
    assert file.getvalue() == "There are none.\n"


def test_a_record_leaves_out_what_says_nothing() -> None:
    out, file = output()
    out.record(ROWS[1], COLUMNS)
    assert file.getvalue() == "job     x\nstatus  paused\n"


@pytest.mark.parametrize("is_terminal", [False, True])
def test_other_peoples_text_cannot_drive_the_terminal(is_terminal: bool) -> None:
    evil = "a\x1b]0;owned\x07\x1b[2J\u202e\x9b31m[red]b[/red]\n"
    out, file = output(is_terminal=is_terminal)
    out.rows([{"jobId": evil}], COLUMNS[:1], none="none")
    out.say(visible(evil))
    text = file.getvalue()
    assert "\x1b]" not in text
    assert "\x1b[2J" not in text
    assert not {"\x07", "\u202e", "\x9b"} & set(text)
    assert "[red]" in text


def test_json_for_programs_is_ascii() -> None:
    out, file = output(as_json=True)
    out.json({"name": "Grüße\x9b"})
    assert file.getvalue().isascii()


@pytest.mark.parametrize(
    ("zone", "text"),
    [("Europe/Berlin", "2026-11-16 07:00:00 +01:00"), ("America/St_Johns", "2026-11-16 02:30:00 -03:30")],
)
def test_times_are_local_with_their_offset(monkeypatch: pytest.MonkeyPatch, zone: str, text: str) -> None:
    import time

    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        assert local("2026-11-16T06:00:00Z") == text
        assert local("2026-11-16T06:00:00.123456Z") == text
    finally:
        monkeypatch.setenv("TZ", "UTC")
        time.tzset()


def test_what_is_no_time_stays_as_it_is() -> None:
    assert local(None) == "-"
    assert local("soon\x07") == "soon\\x07"


def test_values_in_a_line() -> None:
    values: list[object] = [None, "", [], {}, True, False, 0, 1.5]
    assert [shown(one) for one in values] == [
        "-",
        "-",
        "-",
        "-",
        "yes",
        "no",
        "0",
        "1.5",
    ]
    assert shown({"a": [1]}) == '{"a": [1]}'
