"""The matrix: every kind of task × every story × both engines. What is not there has a reason."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from sweephand.domain.kinds import KINDS
from sweephand.domain.retry import FailureClass
from sweephand.domain.run import RunState
from sweephand.domain.sensor import SENSOR, SUBJECTS
from sweephand.engine.complete import TIMEOUT
from tests.stories import plots
from tests.stories.places import Place, Scene, on_moto, on_sqlite

STORIES = ("succeeds", "fails", "recovers", "times_out", "is_cancelled")
ELSEWHERE = {
    "container": "runs where there are containers, and has tests of its own",
    "job": "ends as another run does, and has tests of its own: tests/engine/test_look.py",
    "approval": "ends when a person says so, and has tests of its own: tests/api/test_tasks.py",
}
ABSENT = {
    ("wait", "recovers"): "it asks nobody but the clock: nothing of it can fail for a while",
    ("sensor.job", "fails"): "it asks this place's own records: the run comes or does not, and nobody can refuse it",
}
ATTEMPTS = {(f"sensor.{subject}", "recovers"): 1 for subject in SUBJECTS}
"""Of a story that recovers: a look that failed is no failed attempt, and the sensor's own goes on."""

Plot = Callable[[Scene], None]


def plot_of(kind: str, story: str) -> Plot | None:
    told = plots.SENT.get(kind, {}).get(story) or getattr(plots, f"{kind.replace('.', '_')}_{story}", None)
    return told if callable(told) else None


def told_of() -> Iterator[str]:
    """Every kind, and of a sensor everything that it can look for."""
    for kind in KINDS:
        if kind == SENSOR:
            yield from (f"{SENSOR}.{subject}" for subject in SUBJECTS)
        elif kind not in ELSEWHERE:
            yield kind


TOLD = [(kind, story) for kind in told_of() for story in STORIES if (kind, story) not in ABSENT]


@pytest.fixture(scope="module", params=["sqlite", "moto"])
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    opened = {"sqlite": on_sqlite, "moto": on_moto}[request.param]
    with opened(tmp_path_factory.mktemp(f"stories-{request.param}")) as there:
        yield there


def test_every_kind_has_every_story_or_a_reason_why_not() -> None:
    missing = [f"{kind}: {story}" for kind, story in TOLD if plot_of(kind, story) is None]
    assert missing == []
    assert [one for one in ABSENT if plot_of(*one) is not None] == [], "a reason for what is there"
    assert {kind for kind, _ in ABSENT} <= set(told_of())
    assert ELSEWHERE.keys() <= KINDS.keys()


@pytest.mark.parametrize(("kind", "story"), TOLD, ids=str)
def test_a_story(place: Place, kind: str, story: str) -> None:
    plot = plot_of(kind, story)
    assert plot is not None
    scene = Scene(place, f"{kind.lower().replace('.', '-')}-{story.replace('_', '-')}")
    place.aws.execution = {}
    place.aws.next.clear()
    place.aws.calls.clear()
    plot(scene)
    if scene.run_key is None:
        return  # it was told in real time, where its end was seen
    place.advance(seconds=30)
    run = scene.run
    match story:
        case "succeeds":
            assert (run.state, run.attempt) == (RunState.SUCCEEDED, 1)
        case "fails":
            assert (run.state, run.attempt) == (RunState.FAILED, 1), run
            assert run.failure is not None
            assert run.failure.kind is FailureClass.PERMANENT
        case "recovers":
            assert (run.state, run.attempt) == (RunState.SUCCEEDED, ATTEMPTS.get((kind, story), 2)), run
        case "times_out":
            assert (run.state, run.failure and run.failure.error) == (RunState.FAILED, TIMEOUT)
        case _:
            assert run.state is RunState.CANCELLED
            place.advance(minutes=2)
            assert scene.run == run, "what is cancelled stays so"
