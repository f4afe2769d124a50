"""Which server and which token a call gets."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from sweephand import Client
from sweephand.client import Connection
from sweephand.client.connection import DEFAULT_URL, config_path
from sweephand.errors import InvalidInput, Refused


def keep(path: Path, text: str, mode: int = 0o600) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)


def keep_config(**fields: str) -> None:
    keep(config_path(), json.dumps(fields))


def test_an_argument_wins_over_the_environment_over_the_file_over_the_default() -> None:
    environ = {"SWEEPHAND_URL": "https://env", "SWEEPHAND_TOKEN": "env", "SWEEPHAND_NAMESPACE": "env"}
    assert Connection.of(environ={}) == Connection(DEFAULT_URL, None, None)
    keep_config(url="https://file", token="file", namespace="file")
    assert Connection.of(environ={}) == Connection("https://file", "file", "file")
    assert Connection.of(environ=environ) == Connection("https://env", "env", "env")
    assert Connection.of("https://me", "me", "me", environ=environ) == Connection("https://me", "me", "me")


def test_an_empty_variable_is_no_value() -> None:
    environ = {"SWEEPHAND_URL": "", "SWEEPHAND_TOKEN": "", "SWEEPHAND_NAMESPACE": ""}
    assert Connection.of(environ=environ) == Connection(DEFAULT_URL, None, None)


def test_the_token_of_a_login_goes_to_no_other_server() -> None:
    keep_config(url="https://file", token="secret")
    assert Connection.of("https://elsewhere", environ={}).token is None
    assert Connection.of("https://FILE/api/v1/", environ={}).token == "secret"


def test_the_local_administrators_token_is_for_the_default_address_only(home: Path) -> None:
    keep(home / ".sweephand" / "admin.token", "swh_admin\n")
    assert Connection.of(environ={}).token == "swh_admin"
    assert Connection.of("http://127.0.0.1:9", environ={}).token is None
    assert Connection.of(token="mine", environ={}).token == "mine"


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o666])
def test_a_token_file_that_others_can_open_is_refused(home: Path, mode: int) -> None:
    keep(home / ".sweephand" / "admin.token", "swh_admin", mode)
    with pytest.raises(Refused, match=r"other users can read it \(mode 0\d+\): run `chmod 600"):
        Connection.of(environ={})
    (home / ".sweephand" / "admin.token").chmod(0o600)
    keep(config_path(), "{}", mode)
    with pytest.raises(Refused, match=r"config\.json"):
        Connection.of(environ={})


@pytest.mark.parametrize("text", ["", "[]", "{", '{"url": 1}', '{"toke": "x"}'])
def test_a_login_file_that_is_not_ours_is_named(text: str) -> None:
    keep(config_path(), text)
    with pytest.raises(InvalidInput, match=r"config\.json must be a JSON object"):
        Connection.of(environ={})


@pytest.mark.parametrize(
    "url",
    [
        "ftp://host",
        "host:8080",
        "http://",
        "https://user:secret@host",
        "https://host/?token=secret",
        "http://example.org",
        "http://10.0.0.7:8080",
        "http://127.0.0.1.example.org",
        "http://host:notaport",
    ],
)
def test_an_address_that_is_none_or_would_give_the_token_away_is_refused(url: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        Connection.of(url, environ={})
    assert "secret" not in refused.value.message


@pytest.mark.parametrize("url", ["http://localhost:1", "http://[::1]:8080", "http://127.0.0.1", "https://example.org"])
def test_plain_http_stays_on_this_machine(url: str) -> None:
    assert Connection.of(url, environ={}).url == url


def test_a_token_with_a_line_break_is_refused_without_being_quoted() -> None:
    with pytest.raises(InvalidInput) as refused:
        Connection.of(token="abc\nX-Evil: 1", environ={})
    assert "abc" not in refused.value.message


def test_no_text_form_shows_the_token() -> None:
    assert "hush" not in repr(Connection.of(token="hush", environ={}))
    with Client(token="hush") as client:
        assert "hush" not in repr(client) + repr(vars(client))


def test_a_login_is_kept_for_its_owner_only_and_replaced_whole() -> None:
    before = os.umask(0)
    try:
        path = Connection("https://one", "first", None).save()
        Connection("https://two", "second", "team").save()
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert Connection.of(environ={}) == Connection("https://two", "second", "team")
    assert [one.name for one in path.parent.iterdir()] == ["config.json"]
