"""Those who listen hear of what they may hear of, and of nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from sweephand.calls import Succeeded
from sweephand.domain.access import Role
from sweephand.domain.ids import JobKey, JobName, Namespace
from sweephand.engine.grant import put_namespace
from sweephand.engine.issue import issue, revoke
from sweephand.engine.put import put
from sweephand.engine.trigger import trigger
from sweephand.local.cloud.deployment import Deployment
from sweephand.orders import encode_outcome
from sweephand.settings import Settings
from sweephand.testing.virtual import SeededDice, VirtualClock

ROOT = Path(__file__).parents[2]
START = datetime(2026, 11, 16, 6, 0, 30, tzinfo=UTC)
DEFAULT, TEAM = Namespace("default"), Namespace("team")


class Socket:
    """A connection, as API Gateway tells the function of it."""

    def __init__(self, deployment: Deployment, name: str) -> None:
        self._deployment = deployment
        self.name = name

    def connect(self, **headers: str) -> int:
        return self._tell("$connect", headers=headers)

    def say(self, message: Any) -> Any:
        """What it hears in return."""
        before = len(self.heard)
        self._tell("$default", body=message if isinstance(message, str) else json.dumps(message))
        return self.heard[before:]

    def leave(self) -> None:
        self._tell("$disconnect")

    @property
    def heard(self) -> list[Any]:
        return self._deployment.pushed[self.name]

    @property
    def is_closed(self) -> bool:
        return self.name in self._deployment.gone

    def changes(self) -> list[Any]:
        return [one for message in self.heard if message["type"] == "changes" for one in message["changes"]]

    def states(self) -> list[tuple[str, str, int]]:
        return [(one["jobId"], one["state"], one["seq"]) for one in self.changes()]

    def _tell(self, route: str, **more: Any) -> int:
        context = {"routeKey": route, "connectionId": self.name, "stage": "live", "apiId": "abc"}
        status: int = self._deployment.invoke("live", {"requestContext": context, **more})["statusCode"]
        return status


class Place:
    """A deployment where tasks end well at once."""

    def __init__(self, deployment: Deployment, clock: VirtualClock) -> None:
        self.deployment = deployment
        self.clock = clock
        put_namespace(deployment.world, TEAM, {}, actor="test")
        for namespace in (DEFAULT, TEAM):
            document = {"name": "report", "command": "report", "timeout": "30s"}
            put(deployment.world, namespace, document, actor="test", expected=None)

    def token(self, namespace: Namespace = DEFAULT) -> str:
        return issue(self.deployment.world, namespace=namespace, role=Role.VIEWER, name="v", actor="test").text

    def socket(self, name: str = "one", *, token: str | None = None, topics: tuple[str, ...] = ()) -> Socket:
        socket = Socket(self.deployment, name)
        assert socket.connect() == 200
        if token is not None:
            assert socket.say({"token": token})[0]["type"] == "welcome"
        if topics:
            assert socket.say({"subscribe": list(topics)}) == [{"type": "subscribed", "topics": list(topics)}]
        return socket

    def run(self, namespace: Namespace = DEFAULT) -> str:
        run = trigger(self.deployment.world, JobKey(namespace, JobName("report")))
        self.deployment.step()
        return run.key.run_id


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    clock = VirtualClock(START)
    done = {"execute": lambda _event, _context: encode_outcome(Succeeded())}
    settings = Settings(issuer="https://pool.test", origin="https://console.test")
    with Deployment(
        ROOT, tmp=tmp_path, clock=clock, dice=SeededDice(1), settings=settings, substitutes=done
    ) as deployment:
        yield Place(deployment, clock)


def test_who_listens_to_a_job_hears_of_its_runs_in_order(place: Place) -> None:
    socket = place.socket(token=place.token(), topics=("job:report",))
    place.run()
    states = socket.states()
    assert [(job, state) for job, state, _ in states] == [
        ("report", "queued"),
        ("report", "running"),
        ("report", "succeeded"),
    ]
    numbers = [seq for *_, seq in states]
    assert numbers == sorted(set(numbers))


def test_who_listens_to_one_run_or_to_another_job_hears_of_nothing_else(place: Place) -> None:
    token = place.token()
    other = place.socket("other", token=token, topics=("job:other", "run:report/20200101T000000Z"))
    everything = place.socket("all", token=token, topics=("runs",))
    place.run()
    assert other.states() == []
    assert len(everything.states()) == 3


def test_who_listens_to_a_run_hears_of_its_tasks_and_who_listens_to_all_runs_does_not(place: Place) -> None:
    step = {"run": {"command": ["true"]}, "timeout": "30s"}
    document = {"name": "dag", "tasks": [{"id": "a", **step}, {"id": "b", "needs": ["a"], **step}]}
    put(place.deployment.world, DEFAULT, document, actor="test", expected=None)
    key = trigger(place.deployment.world, JobKey(DEFAULT, JobName("dag"))).key
    page = place.socket("page", token=place.token(), topics=(f"run:dag/{key.run_id}",))
    everything = place.socket("all", token=place.token(), topics=("runs", "job:dag"))
    place.deployment.step()
    tasks = [(one["taskId"], one["state"]) for one in page.changes() if "taskId" in one]
    assert tasks == [(task, state) for task in ("a", "b") for state in ("queued", "running", "succeeded")]
    assert {one["runId"] for one in page.changes()} == {key.run_id}
    runs = [one for one in page.changes() if "taskId" not in one]
    assert runs == everything.changes()
    assert runs[-1]["state"] == "succeeded"


def test_nobody_hears_of_another_namespace(place: Place) -> None:
    socket = place.socket(token=place.token(TEAM), topics=("runs", "job:report"))
    place.run(DEFAULT)
    assert socket.states() == []
    place.run(TEAM)
    assert len(socket.states()) == 3


def test_without_a_token_nothing_is_told_and_the_connection_ends(place: Place) -> None:
    socket = place.socket()
    (answer,) = socket.say({"subscribe": ["runs"]})
    assert answer["type"] == "error"
    assert socket.is_closed
    stranger = place.socket("stranger")
    stranger.say({"token": "swh_0123456789abcdef_" + "x" * 43})
    assert stranger.is_closed


def test_a_token_for_another_namespace_is_refused(place: Place) -> None:
    socket = place.socket()
    (answer,) = socket.say({"token": place.token(TEAM), "namespace": "default"})
    assert "namespace default" in answer["detail"]
    assert socket.is_closed


def test_a_token_counts_for_five_minutes_and_a_revoked_one_no_longer(place: Place) -> None:
    world = place.deployment.world
    lasting = issue(world, namespace=DEFAULT, role=Role.VIEWER, name="lasting", actor="test")
    fleeting = issue(world, namespace=DEFAULT, role=Role.VIEWER, name="fleeting", actor="test")
    kept = place.socket("kept", token=lasting.text, topics=("runs",))
    lost = place.socket("lost", token=fleeting.text, topics=("runs",))
    revoke(world, [DEFAULT], fleeting.token.id, actor="test")
    place.clock.move(place.clock.now() + timedelta(minutes=4))
    kept.say({"token": lasting.text})
    lost.say({"token": fleeting.text})
    assert lost.is_closed
    place.clock.move(place.clock.now() + timedelta(minutes=2))
    place.run()
    assert len(kept.states()) == 3
    place.clock.move(place.clock.now() + timedelta(minutes=6))
    place.run()
    assert kept.heard[-1]["type"] == "closing"
    assert kept.is_closed


def test_a_page_of_another_site_may_not_connect(place: Place) -> None:
    socket = Socket(place.deployment, "page")
    assert socket.connect(Origin="https://elsewhere.test") == 403
    assert socket.connect(Origin="null") == 403
    assert socket.connect(Origin="https://console.test") == 200


def test_a_connection_that_is_gone_is_forgotten_and_the_others_are_told(place: Place) -> None:
    token = place.token()
    gone = place.socket("a-gone", token=token, topics=("runs",))
    there = place.socket("b-there", token=token, topics=("runs",))
    place.deployment.gone.add(gone.name)
    place.run()
    assert len(there.states()) == 3
    assert gone.states() == []
    place.deployment.gone.clear()
    place.run()
    assert gone.states() == []


def test_who_leaves_or_unsubscribes_is_told_no_more(place: Place) -> None:
    token = place.token()
    leaver = place.socket("leaver", token=token, topics=("runs",))
    quiet = place.socket("quiet", token=token, topics=("runs", "job:report"))
    leaver.leave()
    assert quiet.say({"unsubscribe": ["runs", "job:report"]})[0]["type"] == "unsubscribed"
    place.run()
    assert leaver.states() == quiet.states() == []
    assert quiet.say({"ping": True}) == [{"type": "pong"}]


@pytest.mark.parametrize(
    "message",
    [
        "not JSON",
        "[]",
        {},
        {"subscribe": []},
        {"subscribe": "runs"},
        {"subscribe": ["everything"]},
        {"subscribe": ["job:../x"]},
        {"subscribe": ["runs"] * 51},
        {"token": 5},
        "x" * 20_000,
    ],
)
def test_a_message_that_is_none_is_answered_and_changes_nothing(place: Place, message: Any) -> None:
    socket = place.socket(token=place.token())
    (answer,) = socket.say(message)
    assert answer["type"] == "error"
    assert not socket.is_closed
