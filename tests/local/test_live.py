"""Who listens on one machine hears of what it may hear of, soon, and takes nothing from the others."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

import httpx
import pytest
from msgspec.structs import replace
from websockets.exceptions import InvalidStatus

from sweephand.calls import Call, Outcome, Succeeded
from sweephand.clock import SystemDice
from sweephand.domain.ids import DEFAULT, RunId, RunKey
from sweephand.domain.run import Run
from sweephand.embedded import PACE, open_stores
from sweephand.engine.put import put
from sweephand.engine.trigger import trigger
from sweephand.entrypoint import NoTarget
from sweephand.local.live import LISTENS_TO_MAX
from sweephand.local.sockets import Sockets
from sweephand.ports import World
from tests.agent.launching import MovedClock
from tests.local.listening import TEAM, Listener, Place, listening, narrow, place, sockets
from tests.local.serving import HEALTH, Echo, serving
from tests.local.test_up import up
from tests.local.waiting import until

WHO_MAY_NOT_STAY = 1008
TOO_LARGE = 1009
RESTARTS = 1012
STOPS_WITHIN_S = 5
HANDSHAKE: dict[str, Any] = {
    "connection": "Upgrade",
    "upgrade": "websocket",
    "sec_websocket_version": "13",
    "sec_websocket_key": "AAAAAAAAAAAAAAAAAAAAAA==",
}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with place(tmp_path_factory.mktemp("live")) as made:
        yield made


def brief(changes: list[Any]) -> list[tuple[str, int]]:
    return [(change["state"], change["seq"]) for change in changes]


def test_who_listens_hears_of_each_change_with_its_number(shared: Place) -> None:
    with shared.listener(shared.token(), "runs") as one:
        run = shared.run()
        (queued,) = one.until(lambda change: change["runId"] == run.key.run_id)
        run = shared.beaten(run)
        (running,) = one.until(lambda change: change["state"] == "running")
    assert queued.keys() == {"jobId", "runId", "state", "reason", "attempt", "progress", "seq", "at"}
    assert (queued["jobId"], queued["runId"], queued["state"]) == ("report", run.key.run_id, "queued")
    assert (running["attempt"], running["seq"]) == (1, run.rev)
    assert queued["seq"] < running["seq"]


def test_many_changes_between_two_looks_are_told_as_the_last(shared: Place) -> None:
    with shared.listener(shared.token(), "job:report") as one:
        run = shared.run()
        one.until(lambda change: change["runId"] == run.key.run_id)
        run = shared.beaten(run, times=20)
        changes = one.until(lambda change: change["seq"] == run.rev)
    assert brief(changes) == [("running", run.rev)]


def test_who_listens_to_something_else_hears_nothing(shared: Place) -> None:
    with shared.listener(shared.token(), "job:other", "run:report/20200101T000000Z") as one:
        shared.run()
        assert one.hears_nothing()
        one.say({"subscribe": ["job:report"]})
        one.hear("subscribed")
        run = shared.run()
        assert [change["runId"] for change in one.until(lambda _: True)] == [run.key.run_id]
        one.say({"unsubscribe": ["job:report"]})
        one.hear("unsubscribed")
        shared.run()
        assert one.hears_nothing()
        one.say({"ping": True})
        assert one.hear("pong") == {"type": "pong"}


def test_planned_runs_are_nobodys_news(shared: Place) -> None:
    with shared.listener(shared.token(), "runs") as one:
        run = shared.run()
        one.until(lambda change: change["runId"] == run.key.run_id)
        key = RunKey(run.key.job, RunId("20990101T000000Z"))
        planned = Run(key, run.fire_at, run.start_at, run.created_at, run.changed_at, nonce="planned")
        assert shared.world.runs.create([planned]) == [True]
        assert one.hears_nothing()
        shared.beaten(planned)
        assert [change["state"] for change in one.until(lambda _: True)] == ["running"]


def test_nobody_hears_of_another_namespace(shared: Place) -> None:
    with shared.listener(shared.token(TEAM), "runs", "job:report") as one:
        run = shared.run(DEFAULT)
        one.say({"subscribe": [f"run:report/{run.key.run_id}"]})
        one.hear("subscribed")
        shared.beaten(run)
        assert one.hears_nothing()
        own = shared.run(TEAM)
        assert [change["runId"] for change in one.until(lambda _: True)] == [own.key.run_id]


def test_a_token_for_another_namespace_is_refused(shared: Place) -> None:
    with shared.listener() as one:
        one.say({"token": shared.token(TEAM), "namespace": "default"})
        assert one.end() == WHO_MAY_NOT_STAY
        assert "namespace default" in one.heard[-1]["detail"]


@pytest.mark.parametrize(
    "message",
    [{"subscribe": ["runs"]}, {"ping": True}, {"token": ""}, {"token": "swh_0123456789abcdef_" + "x" * 43}],
    ids=str,
)
def test_without_a_token_that_opens_something_nothing_is_told_and_it_ends(shared: Place, message: Any) -> None:
    with shared.listener() as one:
        one.say(message)
        assert one.end() == WHO_MAY_NOT_STAY
        assert [heard["type"] for heard in one.heard] == ["error"]


@pytest.mark.parametrize(
    "message", ["not JSON", "[]", {}, {"subscribe": ["everything"]}, {"token": 5}, "x" * 20_000, b"\xff\x00"]
)
def test_a_message_that_is_none_is_answered_and_changes_nothing(shared: Place, message: Any) -> None:
    with shared.listener(shared.token(), "runs") as one:
        one.say(message)
        assert one.hear("error")["detail"]
        run = shared.run()
        assert one.until(lambda change: change["runId"] == run.key.run_id)


def test_a_message_beyond_all_measure_ends_it(shared: Place) -> None:
    with shared.listener(shared.token()) as one:
        one.say("x" * 40_000)
        assert one.end() == TOO_LARGE


def test_topics_are_bounded(shared: Place) -> None:
    with shared.listener(shared.token()) as one:
        for first in range(0, LISTENS_TO_MAX, 50):
            one.say({"subscribe": [f"job:job-{first + n}" for n in range(50)]})
            one.hear("subscribed")
        one.say({"subscribe": ["job:one-more"]})
        assert "at most" in one.hear("error")["detail"]


ELSEWHERE = [
    "https://elsewhere.example",
    "null",
    "http://127.0.0.1",
    "http://127.0.0.1:1",
    "http://127.0.0.1.elsewhere.example",
    "file://",
    "",
]


@pytest.mark.parametrize("origin", ELSEWHERE)
def test_a_page_of_another_site_may_not_connect_and_fills_no_log(
    shared: Place, origin: str, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(InvalidStatus) as refused, listening(shared.server.port, additional_headers={"Origin": origin}):
        pass
    response = refused.value.response
    assert response.status_code == 403
    assert response.headers["content-type"] == "application/problem+json"
    assert json.loads(response.body)["status"] == 403
    assert caplog.records == []


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "LocalHost"])
def test_a_page_of_this_server_may_connect_by_either_of_its_names(shared: Place, name: str) -> None:
    here = f"{name}:{shared.server.port}"
    other = f"{'localhost' if name == '127.0.0.1' else '127.0.0.1'}:{shared.server.port}"
    asked = {
        origin: shared.server.ask("GET", "/live", host=here, origin=f"http://{origin}", **HANDSHAKE).status
        for origin in (here.lower(), other)
    }
    assert asked == {here.lower(): 101, other: 403}


@pytest.mark.parametrize("host", ["elsewhere.example", "127.0.0.1.elsewhere.example", "0.0.0.0"])
def test_a_page_whose_name_was_made_to_lead_here_may_not_connect(shared: Place, host: str) -> None:
    heard = shared.server.ask("GET", "/live", host=host, origin=f"http://{host}", **HANDSHAKE)
    assert (heard.status, heard.is_problem) == (403, True)


@pytest.mark.parametrize(
    "path", ["/live/", "/LIVE", "//live", "/live/more", "/api/live", "/%6cive", "/", "/api/v1/live"]
)
def test_nothing_but_live_speaks_another_protocol(shared: Place, path: str) -> None:
    with pytest.raises(InvalidStatus) as refused, listening(shared.server.port, path=path):
        pass
    assert refused.value.response.status_code == 401


IMPROPER: list[dict[str, Any]] = [
    {"connection": "keep-alive"},
    {"upgrade": "h2c"},
    {"sec_websocket_version": "8"},
    {"sec_websocket_version": ""},
    {"sec_websocket_key": "short"},
    {"sec_websocket_key": "AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA=="},
]


@pytest.mark.parametrize("wrong", IMPROPER, ids=str)
def test_what_is_no_proper_request_to_listen_is_a_call_like_others(shared: Place, wrong: dict[str, Any]) -> None:
    heard = shared.server.ask("GET", "/live", **HANDSHAKE | wrong)
    assert (heard.status, heard.is_problem) == (401, True)
    assert shared.server.ask("POST", "/live", **HANDSHAKE).status == 401
    assert shared.server.ask("GET", "/live", **HANDSHAKE | {"connection": "keep-alive, Upgrade"}).status == 101


def test_who_does_not_prove_itself_in_time_is_let_go_of_and_who_does_stays(tmp_path: Path) -> None:
    with place(tmp_path, prove_within_s=0.2) as own, own.listener() as silent, own.listener(own.token()) as known:
        assert silent.end() == WHO_MAY_NOT_STAY
        assert silent.heard[-1]["type"] == "closing"
        assert known.hears_nothing()


def test_a_token_counts_for_five_minutes_and_a_revoked_one_no_longer(tmp_path: Path) -> None:
    with place(tmp_path) as own, ExitStack() as stack:
        (lasting, _), (fleeting, revoke) = own.issued(), own.issued()
        kept, idle, lost = (stack.enter_context(own.listener(token, "runs")) for token in (lasting, lasting, fleeting))
        own.clock.move(minutes=4)
        revoke()
        kept.welcomed(lasting)
        lost.say({"token": fleeting})
        assert lost.end() == WHO_MAY_NOT_STAY
        own.clock.move(minutes=2)
        assert idle.end() == WHO_MAY_NOT_STAY
        assert idle.heard[-1]["type"] == "closing"
        run = own.run()
        assert kept.until(lambda change: change["runId"] == run.key.run_id)


class Held:
    """Every task succeeds once it is let go."""

    def __init__(self) -> None:
        self.let_go = Event()

    def execute(self, call: Call) -> Outcome:
        self.let_go.wait(30)
        return Succeeded(call.run.key.task)


TASKS = [{"id": "a", "run": {"command": ["a"]}}, {"id": "b", "needs": ["a"], "run": {"command": ["b"]}}]


def test_who_listens_to_a_run_hears_of_its_tasks_and_who_listens_to_all_runs_does_not(tmp_path: Path) -> None:
    held = Held()
    with place(tmp_path, target=held) as own, own.listener(own.token(), "runs", "job:dag") as everything:
        head = put(own.world, DEFAULT, {"name": "dag", "tasks": TASKS}, actor="test", expected=None)
        key = trigger(own.world, head.key).key
        with own.listener(own.token(), f"run:dag/{key.run_id}") as page:
            held.let_go.set()
            seen = page.until(lambda change: "taskId" not in change and change["state"] == "succeeded")
        others = everything.until(lambda change: change["state"] == "succeeded")
    ends = [(change["taskId"], change["state"]) for change in seen if "taskId" in change]
    assert [task for task, state in ends if state == "succeeded"] == ["a", "b"]
    assert {change["runId"] for change in seen} == {key.run_id}
    assert [change for change in others if "taskId" in change] == []


def test_a_task_is_told_with_its_own_state_and_number(shared: Place) -> None:
    head = put(shared.world, DEFAULT, {"name": "dag", "tasks": TASKS}, actor="test", expected=None)
    run = trigger(shared.world, head.key)
    with shared.listener(shared.token(), f"run:dag/{run.key.run_id}") as one:
        tasks = [replace(run, key=run.key.of_task(name)) for name in ("a", "load[3]")]
        assert shared.world.runs.create(tasks) == [True, True]
        found = one.until(lambda change: change.get("taskId") == "load[3]")
        moved = shared.beaten(tasks[0], times=2)
        found += one.until(lambda change: change["seq"] == moved.rev)
    assert [(one["runId"], one["taskId"], one["state"], one["seq"]) for one in found] == [
        (run.key.run_id, "a", "queued", 0),
        (run.key.run_id, "load[3]", "queued", 0),
        (run.key.run_id, "a", "running", moved.rev),
    ]


def test_what_another_process_changes_is_heard_too(tmp_path: Path) -> None:
    """Another opening of the file shares nothing with the first but the file."""
    with (
        place(tmp_path) as own,
        own.listener(own.token(), "runs") as one,
        closing(open_stores(tmp_path / "test.db", clock=own.clock)) as others,
    ):
        world = World.over(others, clock=own.clock, dice=SystemDice(), target=NoTarget(), pace=PACE, owner="other")
        run = own.run(world=world)
        assert one.until(lambda change: change["runId"] == run.key.run_id)


def test_two_processes_on_one_folder_tell_of_each_others_runs_and_stop_soon(tmp_path: Path) -> None:
    with up(tmp_path / "data", "--no-examples") as first, up(tmp_path / "data", "--no-examples") as second:
        port = httpx.URL(first.url).port
        assert port is not None
        first.create("hello", "true")
        with listening(port, origin=first.url) as one:
            one.welcomed(first.token, "job:hello")
            run_id = second.trigger("hello")
            seen = one.until(lambda change: change["state"] == "succeeded")
            assert {change["runId"] for change in seen} == {run_id}
            first.process.send_signal(signal.SIGTERM)
            assert one.end() == RESTARTS
        assert first.process.wait(STOPS_WITHIN_S) == 0


def test_who_comes_when_nobody_listened_hears_nothing_of_before(tmp_path: Path) -> None:
    with place(tmp_path) as own:
        own.run()
        with own.listener(own.token()) as one:
            before = own.run()
            assert one.hears_nothing()
            one.welcomed(own.token(), "runs")
            after = own.run()
            heard = [change["runId"] for change in one.until(lambda change: change["runId"] == after.key.run_id)]
    assert before.key.run_id not in heard


def told_of_many(own: Place, run: Run, one: Listener, number: int) -> None:
    """So many runs more, whose changes fill a few messages, until one that listens has heard of all."""
    wanted = {RunId(f"{run.key.run_id}-{number}-{n}") for n in range(200)}
    own.world.runs.create([replace(run, key=RunKey(run.key.job, one)) for one in wanted])
    while wanted:
        wanted -= {change["runId"] for change in one.hear("changes")["changes"]}


def connections(own: Place) -> int:
    return len(own.server.server.server_state.connections)


def test_who_does_not_read_is_let_go_of_and_the_others_hear_everything(tmp_path: Path) -> None:
    with place(tmp_path, unsent_bytes=100_000, unread_bytes=4_096) as own, ExitStack() as stack:
        token = own.token()
        stuck = stack.enter_context(own.listener(token, "runs", sock=narrow(own.server.port), max_queue=1))
        reading = stack.enter_context(own.listener(token, "runs"))
        run = own.run()
        for number in range(10):
            told_of_many(own, run, reading, number)
        until(lambda: connections(own) == 1, within_s=10, what="the one that does not read is gone")
        assert stuck.end() is None


def test_stopping_waits_neither_for_those_who_listen_nor_for_those_who_do_not_read(tmp_path: Path) -> None:
    with place(tmp_path, unread_bytes=4_096) as own, ExitStack() as stack:
        token = own.token()
        stack.enter_context(own.listener(token, "runs", sock=narrow(own.server.port), max_queue=1))
        idle = stack.enter_context(own.listener(token))
        reading = stack.enter_context(own.listener(token, "runs"))
        run = own.run()
        for number in range(4):
            told_of_many(own, run, reading, number)
        own.server.server.should_exit = True
        until(lambda: connections(own) == 0, within_s=STOPS_WITHIN_S, what="nobody is connected")
        assert idle.end() == RESTARTS


def test_one_too_many_is_told_to_come_back_and_calls_are_answered_as_before(tmp_path: Path) -> None:
    with place(tmp_path, listeners=2) as own, own.listener() as first, own.listener():
        with pytest.raises(InvalidStatus) as refused, own.listener():
            pass
        assert refused.value.response.status_code == 503
        assert refused.value.response.headers["retry-after"] == "1"
        assert own.server.ask(*HEALTH).status == 200
        first.say({"ping": True})
        assert first.end() == WHO_MAY_NOT_STAY
        until(lambda: connections(own) == 1, within_s=10, what="there is room")
        with own.listener(own.token()):
            pass


class Broken:
    """Behind the server, something is always wrong."""

    def __init__(self, _sockets: Sockets, status: int = 200) -> None:
        self._status = status

    def connect(self, connection: str, headers: Mapping[str, str]) -> int:
        return self._status

    def hear(self, connection: str, text: str) -> None:
        raise RuntimeError(SECRET)

    def leave(self, connection: str) -> None:
        raise RuntimeError(SECRET)

    def look(self) -> None:
        raise RuntimeError(SECRET)


SECRET = "the reason is nobody's business"


def test_what_goes_wrong_is_told_without_a_reason_and_ends_nothing(caplog: pytest.LogCaptureFixture) -> None:
    clock = MovedClock()
    with serving(Echo(), sockets=sockets(Broken, clock)) as server, listening(server.port) as one:
        for _ in range(2):
            one.say({"ping": True})
            assert one.hear("error") == {"type": "error", "detail": "Something is wrong here: see the log."}
    assert SECRET in caplog.text


def test_who_is_refused_behind_the_server_hears_the_status() -> None:
    clock = MovedClock()
    with serving(Echo(), sockets=sockets(partial(Broken, status=403), clock)) as server:
        with pytest.raises(InvalidStatus) as refused, listening(server.port):
            pass
        assert refused.value.response.status_code == 403
