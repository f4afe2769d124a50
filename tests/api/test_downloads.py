"""Signed addresses of files: for whoever has one, for a few minutes, for that file and no other."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from sweephand.api.app import Api
from sweephand.api.downloads import DOWNLOAD, Downloads
from sweephand.artifacts import left_behind
from tests.api.client import Callers, Client, VirtualEmbedded
from tests.api.test_logs import begun, key_of

SECRET = b"what the folder keeps"
NAME = "a/ü 1%.html"


class Place:
    """Two runs with a file each, which have the same name."""

    def __init__(self, folder: Path) -> None:
        self.virtual = VirtualEmbedded()
        self.api = Api(self.virtual.world, downloads=Downloads(SECRET))
        self.callers = Callers(self.virtual.world, self.api)
        self.nobody = self.callers.nobody()
        self.runs = {job: begun(self.virtual, job) for job in ("mine", "theirs")}
        for job, run in self.runs.items():
            (folder / job / "a").mkdir(parents=True)
            (folder / job / NAME).write_text(job)
            self.virtual.world.artifacts.keep(key_of(run, job=job), left_behind(folder / job)[0])

    def listed(self, job: str, client: Client | None = None) -> Any:
        viewer = client or self.callers.role("viewer")
        (found,) = viewer.get(f"/jobs/{job}/runs/{self.runs[job]}/artifacts").expect(200).items
        return found

    def address(self, job: str) -> str:
        url: str = self.listed(job)["url"]
        return url.removeprefix("/api/v1")

    def ticket(self, job: str) -> str:
        return parse_qs(urlsplit(self.address(job)).query)["ticket"][0]

    def opened(self, ticket: str) -> int:
        return self.nobody.get(f"{DOWNLOAD}?ticket={ticket}").status


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_whoever_has_the_address_downloads_the_file_and_no_browser_shows_it(place: Place) -> None:
    fetched = place.nobody.get(place.address("mine")).expect(200)
    assert base64.b64decode(fetched.text) == b"mine"
    assert fetched.headers["content-type"] == "application/octet-stream"
    assert fetched.headers["content-disposition"] == "attachment; filename*=UTF-8''%C3%BC%201%25.html"
    assert fetched.headers["x-content-type-options"] == "nosniff"


def test_it_ends_after_five_minutes_and_a_new_list_has_a_new_one(place: Place) -> None:
    ticket = place.ticket("mine")
    place.virtual.jump(seconds=299)
    assert place.opened(ticket) == 200
    place.virtual.jump(seconds=1)
    assert place.opened(ticket) == 403
    assert place.opened(place.ticket("mine")) == 200


def test_altered_anywhere_it_opens_nothing(place: Place) -> None:
    ticket = place.ticket("mine")
    for at, character in enumerate(ticket):
        other = "A" if character != "A" else "B"
        assert place.opened(ticket[:at] + other + ticket[at + 1 :]) == 403, at
    for wrong in (ticket[:-1], f"{ticket}A", ticket.partition(".")[0], ".", f"{ticket}.{ticket}"):
        assert place.opened(wrong) == 403, wrong
    for wrong in ("", "%00", "a%2Fb", "x" * 5_000):
        assert place.opened(wrong) == 400, wrong
    place.nobody.get(DOWNLOAD).expect(400)


def test_the_signature_for_one_run_opens_no_other_and_so_does_none_of_another_folder(place: Place) -> None:
    (mine, own), (theirs, _) = (place.ticket(job).split(".") for job in place.runs)
    assert place.opened(f"{theirs}.{own}") == 403
    key, now = key_of(place.runs["mine"], job="mine"), place.virtual.now
    for other in (b"", b"another folder's", SECRET * 2):
        assert place.opened(Downloads(other).address(key, NAME, now=now).partition("=")[2]) == 403
    assert place.opened(Downloads(SECRET).address(key, NAME, now=now).partition("=")[2]) == 200  # a second process
    assert place.opened(f"{mine}.{own}") == 200


def test_it_serves_what_was_left_behind_and_nothing_beside_it(place: Place) -> None:
    key, now = key_of(place.runs["mine"], job="mine"), place.virtual.now
    for name in ("nothing", "../theirs", "/etc/passwd", "a", ""):
        assert place.opened(Downloads(SECRET).address(key, name, now=now).partition("=")[2]) == 404, name


def test_the_address_that_takes_a_token_is_still_there_and_still_takes_one(place: Place) -> None:
    path = f"/jobs/mine/runs/{place.runs['mine']}/artifacts/file?task=main&attempt=1&name=a/%C3%BC+1%25.html"
    assert base64.b64decode(place.callers.role("viewer").get(path).expect(200).text) == b"mine"
    place.nobody.get(path).expect(401)
    place.callers.platform().put("/namespaces/team", {}).expect(201)
    place.callers.role("admin", "team").get(path).expect(404)


def test_where_nobody_signs_there_are_no_such_addresses(place: Place) -> None:
    ticket = place.ticket("mine")
    unsigned = Callers(place.virtual.world, Api(place.virtual.world))
    assert place.listed("mine", unsigned.role("viewer"))["url"].startswith("/api/v1/jobs/mine/runs/")
    unsigned.nobody().get(f"{DOWNLOAD}?ticket={ticket}").expect(404)
    unsigned.role("admin").get(f"{DOWNLOAD}?ticket={ticket}").expect(404)
