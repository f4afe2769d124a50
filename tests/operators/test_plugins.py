"""Operators and hooks that other packages bring: found, checked, run, and kept from breaking anything."""

from __future__ import annotations

import json
import logging
import re
import subprocess
import sys
import tarfile
import threading
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from textwrap import dedent
from typing import Any

import jsonschema_rs
import pytest
from msgspec.structs import replace

from sweephand.api.app import Api
from sweephand.api.definitions import components
from sweephand.calls import Call, Succeeded
from sweephand.cli.documents import read_one
from sweephand.clock import SystemClock, SystemDice
from sweephand.domain.definition import parse
from sweephand.domain.ids import JobKey, JobName, Namespace
from sweephand.domain.kinds import read_step
from sweephand.domain.retry import Failure, FailureClass
from sweephand.domain.run import Run, RunState
from sweephand.embedded import PACE, open_stores
from sweephand.engine.put import put
from sweephand.engine.trigger import trigger
from sweephand.errors import InvalidInput
from sweephand.local import Runtime
from sweephand.operators import Operators
from sweephand.ports import World
from sweephand.secrets import Values
from tests.api.client import Callers
from tests.local.test_up import up
from tests.local.waiting import until
from tests.operators.calls import call, command

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "sweephand-archive"
DEFAULT = Namespace("default")
NOW = datetime(2026, 11, 16, tzinfo=UTC)
PERMANENT, TRANSIENT = FailureClass.PERMANENT, FailureClass.TRANSIENT


class Site:
    """A folder that packages are installed in, and that is imported from."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def install(self, package: str, source: str, *, operators: str = "", hooks: str = "") -> None:
        """A package of one module, with these lines of entry points."""
        (self.folder / f"{package}.py").write_text(dedent(source))
        info = self.folder / f"{package}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[sweephand.operators]\n{operators}\n[sweephand.hooks]\n{hooks}\n")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    folder = tmp_path / "site"
    folder.mkdir()
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(folder))
    yield Site(folder)
    for name in set(sys.modules) - before:
        if getattr(sys.modules[name], "__file__", None) and str(folder) in str(sys.modules[name].__file__):
            del sys.modules[name]


ECHO = """
    import msgspec
    from typing import Annotated
    from sweephand.operators import Attempt, Outcome, Succeeded

    class Inner(msgspec.Struct):
        name: str

    class Echo:
        made = 0

        class Spec(msgspec.Struct, kw_only=True, rename="camel"):
            text: str
            max_count: Annotated[int, msgspec.Meta(ge=1, le=9)] = 1
            inner: list[Inner] = []

            def __post_init__(self):
                if self.text == "never":
                    raise ValueError("This text is never right.")

        def __init__(self):
            Echo.made += 1

        def execute(self, attempt: Attempt) -> Outcome:
            options = attempt.options(self.Spec)
            return Succeeded({"said": [options.text] * options.max_count})
"""


@pytest.fixture
def echo(site: Site) -> Site:
    site.install("echoing", ECHO, operators="echo = echoing:Echo")
    return site


def step(**options: Any) -> Call:
    """A call of the operator `echo`."""
    asked = call("echo", None, params={"n": 2, "word": "hello"})
    spec = asked.task.spec
    assert isinstance(spec, dict)
    spec.clear()
    spec.update(options)
    return asked


def failed(outcome: object) -> tuple[str, FailureClass]:
    assert isinstance(outcome, Failure), outcome
    return outcome.error, outcome.kind


# The example of the documentation.


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where pip has installed it."""
    target = tmp_path_factory.mktemp("installed")
    options = ["--quiet", "--no-index", "--no-deps", "--no-build-isolation", "--disable-pip-version-check"]
    copied = tmp_path_factory.mktemp("source") / "package"
    subprocess.run(["cp", "-r", str(EXAMPLE), str(copied)], check=True)
    subprocess.run(
        [sys.executable, "-m", "pip", "install", *options, "--target", str(target), str(copied)],
        check=True,
        timeout=120,
    )
    return target


def test_the_example_runs_jobs_on_the_embedded_engine(
    example: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(example))
    monkeypatch.setenv("RUN_JOURNAL", str(tmp_path / "journal"))
    source = tmp_path / "www"
    source.mkdir()
    (source / "index.html").write_text("hello")
    definition = read_one(str(EXAMPLE / "job.yaml"))
    definition["run"]["archive"] |= {"folder": f"{tmp_path}/${{params.site}}", "into": str(tmp_path / "to"), "keep": 1}
    target, clock = Operators(tmp_path / "work"), SystemClock()
    with (
        closing(open_stores(tmp_path / "test.db", clock=clock)) as stores,
        Runtime(stores, target=target, clock=clock, dice=SystemDice(), workers=2) as runtime,
    ):
        put(runtime.world, DEFAULT, definition, actor="test", expected=None, operators=target.steps)
        _ran(runtime)
        run = _ran(runtime)
    (made,) = (tmp_path / "to").iterdir()
    assert run.output == {"archive": str(made), "files": 1}
    with tarfile.open(made) as archive:
        assert archive.getnames() == ["index.html"]
    lines = [json.loads(line) for line in (tmp_path / "journal").read_text().splitlines()]
    assert [line["what"] for line in lines] == ["began", "succeeded"] * 2
    assert lines[-1] == {"run": str(run.key), "attempt": 1, "what": "succeeded"}


def _ran(runtime: Runtime) -> Run:
    """A run of the example's job, that has succeeded."""
    key = trigger(runtime.world, JobKey(DEFAULT, JobName("nightly-archive"))).key

    def look() -> Run:
        found = runtime.world.runs.get(key)
        assert found is not None
        return found

    until(lambda: look().state is RunState.SUCCEEDED, within_s=20, what="it has run")
    return look()


def test_the_example_is_served_by_up_once_it_is_installed(
    example: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(example))
    (tmp_path / "empty").mkdir()
    with up(tmp_path / "data", "--no-examples") as running:
        document = running.call("GET", "/openapi.json")["components"]["schemas"]
        assert {"archive"} in [set(one["required"]) for one in document["Step"]["anyOf"]]
        assert document["operators.archive.Spec"]["properties"]["keep"]["anyOf"][0]["maximum"] == 1000
        wrong = {"name": "pack", "run": {"archive": {"folder": "a", "into": "b", "keep": 0}}}
        answer = running.client.post("/jobs", json=wrong)
        assert answer.status_code == 400
        assert [one["path"] for one in answer.json()["errors"]] == ["run.archive.keep"]
        right = {"name": "pack", "run": {"archive": {"folder": str(tmp_path / "empty"), "into": str(tmp_path)}}}
        running.call("POST", "/jobs", json=right)
        run = running.await_state("pack", running.trigger("pack"), "skipped")
        assert "is empty" in run["reason"]


PAGE = (ROOT / "docs" / "extending.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_what_the_page_shows_is_true(site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert blocks("toml")[0] in (EXAMPLE / "pyproject.toml").read_text()
    job, http = blocks("yaml")
    assert job == (EXAMPLE / "job.yaml").read_text()
    (tmp_path / "http.yaml").write_text(http)
    read_step(read_one(str(tmp_path / "http.yaml"))["run"], "run")
    source = "".join(blocks("python")).replace("from __future__ import annotations\n", "")
    site.install("shown", source, operators="echo = shown:Greet", hooks="office = shown:OnlyInTheOffice")
    operators = Operators(tmp_path / "work")
    assert operators.execute(step(name="${params.word}", times=2)) == Succeeded({"said": ["Hello hello"] * 2})
    assert failed(operators.execute(step(name="\n"))) == ("Unprintable", PERMANENT)
    assert capsys.readouterr().out.splitlines()[0] == "team/report/20261003T233000Z Succeeded"


# What is checked when a task is saved.


@pytest.mark.parametrize(
    ("options", "path", "words"),
    [
        ({}, "run.echo.text", "required"),
        ({"text": None}, "run.echo.text", "required"),
        ({"text": 1}, "run.echo.text", "Expected str, got int."),
        ({"text": "a", "maxCount": 0}, "run.echo.maxCount", ">= 1"),
        ({"text": "a", "max_count": 1}, "run.echo.max_count", "did you mean 'maxCount'?"),
        ({"text": "a", "inner": [{"name": "b"}, {"name": 1}]}, "run.echo.inner[1].name", "got int"),
        ({"text": "never"}, "run.echo", "never right"),
        ({"text": "${nothing.a}"}, "run.echo.text", "no root"),
        ([], "run.echo", "not an object"),
    ],
)
def test_a_spec_that_the_operator_could_not_use_is_refused_by_its_path(
    echo: Site, tmp_path: Path, options: Any, path: str, words: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse(
            {"name": "a", "run": {"echo": options}},
            namespace="n",
            now=NOW,
            operators=Operators(tmp_path / "work").steps,
        )
    assert [one for one in refused.value.errors if one[0] == path and words in one[1]], refused.value.errors


def test_all_errors_of_a_spec_are_told_at_once(echo: Site, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput) as refused:
        Operators(tmp_path / "work").steps["echo"].read({"maxCount": "x", "inner": 1}, "run.echo")
    assert {path for path, _ in refused.value.errors} == {"run.echo.text", "run.echo.maxCount", "run.echo.inner"}


GOOD = [
    {"text": "a"},
    {"text": "a", "maxCount": 9, "inner": [{"name": "b"}]},
    {"text": "${params.word}", "maxCount": "${params.n}", "inner": None},
]


@pytest.mark.parametrize("options", GOOD, ids=str)
def test_what_is_taken_is_what_the_schema_takes_and_it_runs(echo: Site, tmp_path: Path, options: Any) -> None:
    operators = Operators(tmp_path / "work")
    body = {"name": "a", "run": {"echo": options}}
    parse(body, namespace="n", now=NOW, operators=operators.steps)
    schemas = components(operators.kinds, operators.steps)
    whole = {"$ref": "#/components/schemas/JobDefinition", "components": {"schemas": schemas}}
    validator = jsonschema_rs.Draft202012Validator(whole)
    validator.validate(body)
    for wrong in ({"text": 1}, {"text": "a", "maxCount": 10}, {"text": "a", "other": 1}, {}):
        assert not validator.is_valid({"name": "a", "run": {"echo": wrong}})
    outcome = operators.execute(step(**options))
    assert isinstance(outcome, Succeeded), outcome


def test_a_value_that_turns_out_wrong_fails_for_good(echo: Site, tmp_path: Path) -> None:
    outcome = Operators(tmp_path / "work").execute(step(text="a", maxCount="${params.word}"))
    assert failed(outcome) == ("InvalidInput", PERMANENT)
    assert isinstance(outcome, Failure)
    assert outcome.message.startswith("maxCount: ")


def test_the_api_knows_installed_operators(echo: Site, tmp_path: Path) -> None:
    clock, operators = SystemClock(), Operators(tmp_path / "work")
    with closing(open_stores(None, clock=clock)) as stores:
        world = World.over(stores, clock=clock, dice=SystemDice(), target=operators, pace=PACE, owner="test")
        admin = Callers(world, api := Api(world, operators=operators.steps)).platform()
        admin.post("/jobs", {"name": "a", "run": {"echo": {"text": "b"}}}).expect(201)
        problem = admin.post("/jobs", {"name": "b", "run": {"echo": {"text": 1}}}).expect(400).json
        assert problem["errors"] == [{"path": "run.echo.text", "message": "Expected str, got int."}]
        admin.post("/jobs", {"name": "b", "run": {"ecco": {"text": "a"}}}).expect(400)
        assert "operators.echo.Inner" in api.document["components"]["schemas"]


# How they are found.


def test_they_are_loaded_when_one_could_be_needed_and_once(echo: Site, tmp_path: Path) -> None:
    operators = Operators(tmp_path / "work")
    parse({"name": "a", "command": "x"}, namespace="n", now=NOW, operators=operators.steps)
    others: list[dict[str, Any]] = [{"http": {"url": "http://a"}}, {"external": {}}]
    for other in others:
        parse({"name": "a", "run": other}, namespace="n", now=NOW, operators=operators.steps)
    assert operators.execute(command(["true"])) == Succeeded()
    assert "echoing" not in sys.modules
    threads = [threading.Thread(target=lambda: operators.kinds) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert operators.kinds == {"command", "python", "http", "echo"}
    assert operators.execute(step(text="a")) == Succeeded({"said": ["a"]})
    assert sys.modules["echoing"].Echo.made == 1


BROKEN = """
    import msgspec

    class NoSpec:
        def execute(self, attempt): ...

    class NoExecute:
        class Spec(msgspec.Struct): ...

    class Explodes(NoExecute):
        def execute(self, attempt): ...
        def __init__(self): raise RuntimeError("a spark")

    class Whole(NoExecute):
        def execute(self, attempt): ...

    class Unschematic:
        class Spec(msgspec.Struct):
            odd: object | complex | bytearray | type
        def execute(self, attempt): ...

    instance = Whole()
"""
LEFT_OUT = {
    "absent": ("absent_module:X", "No module named"),
    "missing": ("broken:Missing", "Missing"),
    "nospec": ("broken:NoSpec", "no struct of msgspec"),
    "noexecute": ("broken:NoExecute", "no method 'execute'"),
    "explodes": ("broken:Explodes", "a spark"),
    "instance": ("broken:instance", "not a class"),
    "unschematic": ("broken:Unschematic", ""),
    "command": ("broken:Whole", "Sweephand's own"),
    "lambda": ("broken:Whole", "Sweephand's own"),
    "bad name": ("broken:Whole", "name"),
    "echo": ("broken:Whole", "Another package"),
}


def test_what_is_broken_is_left_out_with_a_word_and_the_others_work(
    echo: Site, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    lines = "\n".join(f"{name} = {value}" for name, (value, _) in LEFT_OUT.items())
    echo.install("broken", BROKEN, operators=lines, hooks="nothing = broken:NoSpec")
    # Of two with one name, the package whose name comes first has it.
    (echo.folder / "echoing-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: an\nVersion: 1.0\n")
    operators = Operators(tmp_path / "work")
    with caplog.at_level(logging.ERROR):
        assert operators.kinds == {"command", "python", "http", "echo"}
        assert isinstance(operators.execute(step(text="a")), Succeeded)
    said = [record.getMessage() for record in caplog.records]
    for name, (_, words) in LEFT_OUT.items():
        assert [line for line in said if line.startswith(f"'{name}' of broken") and words in line], (name, said)
    assert [line for line in said if "sweephand.hooks" in line and "neither" in line]
    assert operators.execute(command(["true"])) == Succeeded()


# What comes of them.

ODD = """
    import msgspec
    import threading
    from sweephand.operators import Succeeded, Skipped

    class Odd:
        class Spec(msgspec.Struct):
            what: str

        left = threading.Event()

        def execute(self, attempt):
            match attempt.options(self.Spec).what:
                case "raises":
                    raise KeyError("a key")
                case "nothing":
                    return None
                case "large":
                    return Succeeded("x" * 5000)
                case "unfit":
                    return Succeeded({"a": {1, 2}})
                case "skips":
                    return Skipped("no need")
                case "waits":
                    told = threading.Event()
                    attempt.cancellation.stops_by(told.set)
                    told.wait(30)
                    Odd.left.set()
                    return Succeeded("late")
                case "ignores":
                    Odd.left.wait(30)
                    return Succeeded("much later")
"""


@pytest.fixture
def odd(site: Site, tmp_path: Path) -> Operators:
    site.install("oddities", ODD, operators="echo = oddities:Odd")
    return Operators(tmp_path / "work", grace=timedelta(milliseconds=300))


@pytest.mark.parametrize(
    ("what", "error", "kind"),
    [
        ("raises", "KeyError", TRANSIENT),
        ("nothing", "InvalidOutput", PERMANENT),
        ("large", "OutputTooLarge", PERMANENT),
        ("unfit", "InvalidOutput", PERMANENT),
    ],
)
def test_what_an_operator_does_wrong_is_a_failure_of_its_task(
    odd: Operators, what: str, error: str, kind: FailureClass
) -> None:
    assert failed(odd.execute(step(what=what))) == (error, kind)


@pytest.mark.parametrize("what", ["waits", "ignores"])
def test_when_its_time_is_over_it_is_told_and_then_left(odd: Operators, what: str) -> None:
    asked = replace(step(what=what), timeout=timedelta(milliseconds=200))
    assert failed(odd.execute(asked)) == ("Timeout", TRANSIENT)
    left = sys.modules["oddities"].Odd.left
    assert left.is_set() == (what == "waits")
    left.set()


def test_a_cancel_reaches_it(odd: Operators) -> None:
    asked, outcomes = step(what="waits"), list[Any]()
    assert failed(odd.execute(step(what="raises")))[0] == "KeyError"
    thread = threading.Thread(target=lambda: outcomes.append(odd.execute(asked)))
    thread.start()
    left = sys.modules["oddities"].Odd.left

    def cancelled() -> bool:
        odd.cancel(asked)
        return bool(left.wait(0.05))

    until(cancelled, within_s=10, what="it has heard of it")
    thread.join(10)
    assert len(outcomes) == 1


# Hooks.

HOOKS = """
    heard = []

    class First:
        def before(self, attempt):
            heard.append("first before")

        def after(self, attempt, outcome):
            heard.append(f"first after {type(outcome).__name__} {getattr(outcome, 'error', '')}".strip())
            raise RuntimeError("nobody minds")

    class Second:
        def before(self, attempt):
            heard.append("second before")
            if attempt.call.params.get("tell"):
                raise RuntimeError(f"{dict(attempt.call.secrets.by_name)}")
            if attempt.call.params.get("stop"):
                raise RuntimeError("not today")

        def after(self, attempt, outcome):
            heard.append("second after")

    class Third:
        def after(self, attempt, outcome):
            heard.append("third after")
"""


def test_hooks_are_around_every_attempt_and_one_that_fails_before_fails_it(
    site: Site, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    site.install("hooked", HOOKS, hooks="c = hooked:Third\na = hooked:First\nb = hooked:Second")
    operators = Operators(tmp_path / "work")
    made = tmp_path / "made"
    assert operators.execute(command(["touch", str(made)])) == Succeeded()
    heard = sys.modules["hooked"].heard
    assert heard == ["first before", "second before", "third after", "second after", "first after Succeeded"]
    assert "The hook 'a' failed after" in caplog.text
    heard.clear()
    made.unlink()
    outcome = operators.execute(command(["touch", str(made)], params={"stop": True}))
    assert failed(outcome) == ("HookFailed", TRANSIENT)
    assert isinstance(outcome, Failure)
    assert outcome.message == "The hook 'b' failed: not today"
    assert heard == ["first before", "second before", "first after Failure HookFailed"]
    assert not made.exists()


def test_what_operators_and_hooks_raise_is_logged_without_the_values_that_they_were_given(
    site: Site, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    site.install("hooked", HOOKS, hooks="b = hooked:Second")
    site.install("oddities", ODD, operators="echo = oddities:Odd")
    operators = Operators(tmp_path / "work")
    for asked in (command(["true"], params={"tell": True}), step(what="raises")):
        secret = {"DB": "'a key'"} if asked.task.kind == "echo" else {"DB": "hunter2-canary"}
        outcome = operators.execute(replace(asked, secrets=Values(secret)))
        assert isinstance(outcome, Failure)
        assert secret["DB"] not in f"{outcome} {caplog.text}"
    assert "The hook 'b' failed before run" in caplog.text
    assert "The operator 'echo' raised in run" in caplog.text
