"""Workers that wait for work, over a real server: none costs a thread, none is forgotten, none gets another's turn."""

from __future__ import annotations

import json
import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any, Final

import pytest

from sweephand.api.asked import Patience
from sweephand.domain.ids import DEFAULT, JobKey, JobName, RunId, RunKey
from sweephand.engine.match import Matched, Wanted, match
from sweephand.errors import Unavailable
from sweephand.local.gateway import Event
from sweephand.local.polls import held_for_s
from tests.api.client import Served
from tests.api.test_contract import create
from tests.api.test_runs import trigger
from tests.local.serving import ALLOWED, HEALTH, Client, Echo, Serving, head, serving
from tests.local.waiting import until

LEASES: Final = "/api/v1/leases"
WITHIN_S: Final = 20.0


class Desk:
    """A real API behind a real server, and workers who queue up in front of it."""

    def __init__(self, served: Served, server: Serving, connections: ExitStack) -> None:
        self.served = served
        self.server = server
        self._connections = connections
        create(served.admin, "job", run={"external": {}})

    @property
    def line(self) -> int:
        return self.server.polls.waiting

    def comes(self, worker: str, **fields: Any) -> Client:
        """A worker, once it is in the line or has its answer."""
        client = self._connections.enter_context(self.server.connected())
        body = json.dumps({"workerId": worker, "waitSeconds": 20, **fields}).encode()
        headers = {"authorization": f"Bearer {self.served.admin.token}", "content_type": "application/json"}
        client.say(head("POST", LEASES, len(body), **headers) + body)
        return client

    def queues_up(self, worker: str, **fields: Any) -> Client:
        """A worker, once it is in the line."""
        before = self.line
        client = self.comes(worker, **fields)
        until(lambda: self.line > before, within_s=WITHIN_S, what=f"{worker} is in the line")
        return client


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with opened(tmp_path) as made:
        yield made


@contextmanager
def opened(folder: Path, **limits: Any) -> Iterator[Desk]:
    with (
        Served(folder) as served,
        ExitStack() as connections,
        serving(served.api, match=partial(match, served.world), **limits) as server,
        served.runtime,
    ):
        yield Desk(served, server, connections)


def got(client: Client) -> list[str]:
    """The runs that a worker was given."""
    heard = client.hear()
    assert heard.status == 200, heard.body
    return [work["runId"] for work in heard.document["items"]]


def test_a_hundred_workers_that_wait_cost_no_thread_and_get_a_run_each(desk: Desk) -> None:
    desk.comes("first")
    until(lambda: desk.line == 1, within_s=WITHIN_S, what="one in the line")
    before = threading.active_count()
    clients = [desk.comes(f"w{number}") for number in range(100)]
    until(lambda: desk.line == 101, within_s=WITHIN_S, what="all in the line")
    assert threading.active_count() - before <= 8  # those in which calls are made
    assert desk.server.ask(*HEALTH).status == 200
    runs = {trigger(desk.served.admin, "job") for _ in range(101)}
    given = [got(client) for client in clients]
    assert all(len(one) == 1 for one in given)
    assert len({run for (run,) in given} & runs) == 100


def test_who_came_first_is_served_first_though_others_come_when_there_is_work(desk: Desk) -> None:
    first, second = desk.queues_up("w1"), desk.queues_up("w2")
    run = trigger(desk.served.admin, "job")
    late = desk.comes("w3")
    assert got(first) == [run]
    for client in (second, late):
        run = trigger(desk.served.admin, "job")
        assert got(client) == [run]


def test_who_wants_more_than_is_there_gets_it_when_the_time_is_over(desk: Desk) -> None:
    begun = monotonic()
    client = desk.queues_up("w1", max=5, atLeast=2, waitSeconds=1)
    run = trigger(desk.served.admin, "job")
    assert got(client) == [run]
    assert monotonic() - begun > 0.9
    heard = desk.comes("w2", waitSeconds=1).hear().document
    assert (heard["items"], heard["retryAfterSeconds"]) == ([], 0)  # it has waited


def test_a_worker_that_left_the_line_takes_nothing(desk: Desk) -> None:
    desk.queues_up("w1").close()
    until(lambda: desk.line == 0, within_s=WITHIN_S, what="nobody in the line")
    run = trigger(desk.served.admin, "job")
    assert got(desk.comes("w2")) == [run]


def test_a_line_that_is_too_long_is_told_so_and_others_are_served(tmp_path: Path) -> None:
    with opened(tmp_path, polls=2) as desk:
        waiting = [desk.queues_up("w1"), desk.queues_up("w2")]
        heard = desk.comes("w3").hear()
        assert (heard.status, heard.headers["retry-after"], heard.is_problem) == (503, "1", True)
        assert desk.server.ask(*HEALTH).status == 200
        runs = {trigger(desk.served.admin, "job") for _ in waiting}
        assert {run for client in waiting for run in got(client)} == runs


def test_when_the_server_stops_those_who_wait_hear_that_there_is_nothing(desk: Desk) -> None:
    clients = [desk.queues_up("w1"), desk.queues_up("w2", max=5, atLeast=5)]
    begun = monotonic()
    desk.server.server.should_exit = True
    assert [got(client) for client in clients] == [[], []]
    assert monotonic() - begun < 5


class Scripted(Echo):
    """Behind a server: every call waits for the same run, and comes for it in vain until the script is over."""

    RUN: Final = RunKey(JobKey(DEFAULT, JobName("job")), RunId("20300101T000000Z"))

    def __init__(self, looks: Callable[[int], list[Matched]], *, calls: int = 1_000_000) -> None:
        super().__init__()
        self.calls = 0
        self.looks = 0
        self.lines: list[str] = []
        """Who was in the line at each look."""
        self._calls_max = calls
        self._script = looks
        self.gone: list[threading.Event] = []
        self.hold = threading.Event()
        self.hold.set()

    def handle(self, event: Event, *, patience: Patience | None = None) -> Mapping[str, Any]:
        if patience is None:
            return super().handle(event)
        self.calls += 1
        self.gone.append(patience.gone)
        if self.calls < self._calls_max and not patience.is_over:
            patience.waits(Wanted(DEFAULT, event["headers"].get("worker", ""), ("default",)), 1)
        else:
            patience.ends()
        self.hold.wait(WITHIN_S)
        return {"statusCode": 200, "body": "{}"}

    def match(self, line: Sequence[Wanted], *, taken: Set[RunKey]) -> list[Matched]:
        self.looks += 1
        self.lines.append("".join(one.worker for one in line))
        return [one for one in self._script(self.looks) if not one.runs & taken]


def sent(_look: int) -> list[Matched]:
    return [Matched(0, frozenset({Scripted.RUN}))]


def test_nobody_is_sent_again_at_once_for_what_nobody_can_get() -> None:
    api = Scripted(sent)
    with serving(api, match=api.match) as server:
        assert server.ask("POST", LEASES, authorization=ALLOWED).status == 200
    assert api.looks > 8  # twenty in a second
    assert 2 <= api.calls <= 6  # and four times somebody is sent


def test_who_came_together_does_not_come_back_together() -> None:
    held_s = [held_for_s(20, place) for place in range(1_000)]
    assert 15 <= min(held_s) < max(held_s) == 20
    assert max(Counter(held_s).values()) < 100


def test_who_came_in_vain_keeps_the_place() -> None:
    api = Scripted(sent)
    with serving(api, match=api.match) as server, ThreadPoolExecutor(2) as two:
        first = two.submit(server.ask, "POST", LEASES, authorization=ALLOWED, worker="a")
        until(lambda: server.polls.waiting, within_s=WITHIN_S, what="one in the line")
        second = two.submit(server.ask, "POST", LEASES, authorization=ALLOWED, worker="b")
        assert [one.result().status for one in (first, second)] == [200, 200]
    assert "ab" in api.lines
    assert "ba" not in api.lines


def test_a_look_that_fails_is_repeated(caplog: pytest.LogCaptureFixture) -> None:
    def fails_once(look: int) -> list[Matched]:
        if look == 1:
            raise Unavailable("The store did not answer.")
        return sent(look)

    api = Scripted(fails_once, calls=2)
    with (
        caplog.at_level(logging.WARNING, "sweephand.local"),
        serving(api, match=api.match) as server,
        ThreadPoolExecutor(2) as two,
    ):
        asked = [two.submit(server.ask, "POST", LEASES, authorization=ALLOWED) for _ in range(2)]
        assert [one.result().status for one in asked] == [200, 200]
    assert "The store did not answer." in caplog.text
    assert "Traceback" not in caplog.text


def test_a_call_that_is_being_made_hears_that_its_caller_has_gone() -> None:
    api = Scripted(sent)
    api.hold.clear()
    with serving(api, match=api.match) as server:
        with server.connected() as client:
            client.say(head("POST", LEASES, authorization=ALLOWED))
            until(lambda: api.gone, within_s=WITHIN_S, what="a call that is being made")
        until(api.gone[0].is_set, within_s=WITHIN_S, what="word that the client went away")
        api.hold.set()


def test_where_nobody_can_tell_whose_turn_it_is_nobody_is_kept_waiting() -> None:
    with serving(Echo()) as server:
        assert server.ask("POST", LEASES, authorization=ALLOWED).status == 200


def test_calls_for_work_leave_the_others_their_threads() -> None:
    api = Scripted(sent)
    api.hold.clear()
    with serving(api, match=api.match, threads=2, poll_threads=2) as server, ThreadPoolExecutor(4) as many:
        asked = [many.submit(server.ask, "POST", LEASES, authorization=ALLOWED) for _ in range(4)]
        until(lambda: len(api.gone) == 2, within_s=WITHIN_S, what="two calls that are being made")
        assert server.ask(*HEALTH).status == 200
        api.hold.set()
        assert [one.result().status for one in asked] == [200] * 4
