"""Containers on one machine: by docker or podman, as processes where the place says so, else refused with a reason."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from sweephand.calls import Call, Outcome, Skipped, Succeeded
from sweephand.domain.images import Permitted
from sweephand.domain.job import Task
from sweephand.domain.kinds import read_step
from sweephand.domain.retry import Failure, FailureClass
from sweephand.errors import InvalidInput
from sweephand.logs import Line
from sweephand.operators import Logging, Operators, containers_here
from sweephand.operators.container import ANY
from sweephand.secrets import Values
from tests.local.waiting import until
from tests.operators.calls import call

STAND_IN = """\
#!{python}
# Stands in for docker: notes what it is told, and runs the words behind the image where the volume is mounted.
import json, os, subprocess, sys
notes = {notes!r}
with open(notes, "a") as file:
    file.write(json.dumps(sys.argv[1:]) + "\\n")
if sys.argv[1] == "version":
    sys.exit({version})
if sys.argv[1] == "rm":
    sys.exit(0)
words, env, folder = sys.argv[2:], dict(os.environ), ""
while words[0].startswith("--"):
    option = words.pop(0)
    if option == "--rm":
        continue
    value = words.pop(0)
    if option == "--env":
        name, _, text = value.partition("=")
        env[name] = text
    elif option == "--volume":
        folder = value.partition(":")[0]
image, *words = words
if image == "missing":
    sys.stderr.write("Error response from daemon: manifest unknown\\n")
    sys.exit(125)
if image == "busy":
    sys.stderr.write("docker: Error response from daemon: i/o timeout\\n")
    sys.exit(125)
env = {{name: value.replace("/sweephand", folder) for name, value in env.items()}}
sys.exit(subprocess.run(words, env=env).returncode)
"""


@pytest.fixture
def docker(tmp_path: Path) -> Path:
    return stand_in(tmp_path, "docker")


def stand_in(folder: Path, name: str, *, version: int = 0) -> Path:
    program = folder / "bin" / name
    program.parent.mkdir(exist_ok=True)
    program.write_text(STAND_IN.format(python=sys.executable, notes=str(folder / "notes"), version=version))
    program.chmod(0o755)
    return program


def told(folder: Path) -> list[list[str]]:
    return [json.loads(line) for line in (folder / "notes").read_text().splitlines()]


def container(**spec: Any) -> Call:
    made = call("container", "")
    return replace(made, task=Task("main", "container", {"image": "team/report:1", **spec}))


def place(
    folder: Path, environ: Mapping[str, str], *, as_processes: bool = False, images: Permitted = ANY, **more: Any
) -> Operators:
    here = containers_here(environ, as_processes=as_processes, images=images)
    return Operators(folder / "work", environ=environ, containers=here, **more)


def execute(folder: Path, program: Path, call: Call) -> Outcome:
    return place(folder, {"PATH": f"{program.parent}:{os.environ['PATH']}"}).execute(call)


def python(source: str) -> list[str]:
    return [sys.executable, "-c", source]


def test_a_container_gets_its_words_and_variables_and_one_folder(tmp_path: Path, docker: Path) -> None:
    source = (
        "import json,os; known = {'who': os.environ['WHO'], 'job': os.environ['SWEEPHAND_JOB']}; "
        "json.dump(known, open(os.environ['SWEEPHAND_OUTPUT'], 'w'))"
    )
    asked = container(command=python(source), env={"WHO": "${params.who}"}, cpu=512, memory=1024)
    outcome = execute(tmp_path, docker, replace(asked, params={"who": "me; rm -rf /"}))
    assert outcome == Succeeded({"who": "me; rm -rf /", "job": "report"})
    _, run, removed = told(tmp_path)
    name = run[run.index("--name") + 1]
    assert removed == ["rm", "--force", name]
    options = run[: run.index("team/report:1")]
    mounts = [options[at + 1] for at, word in enumerate(options) if word == "--volume"]
    assert len(mounts) == 1
    assert mounts[0].startswith(str(tmp_path / "work"))
    assert not {"--privileged", "--cap-add", "--network", "--pid", "--device"} & set(options)
    assert options[options.index("--security-opt") :][:2] == ["--security-opt", "no-new-privileges"]
    assert [options[options.index(one) + 1] for one in ("--cpus", "--memory")] == ["0.5", "1024m"]


def test_secrets_are_files_and_in_no_variable_or_word(tmp_path: Path, docker: Path) -> None:
    source = (
        "import os,pathlib; secret = pathlib.Path(os.environ['SWEEPHAND_SECRETS'], 'DB').read_text(); "
        "print(secret[::-1], os.environ.get('DB'))"
    )
    asked = container(command=python(source), secrets={"DB": "dsn"})
    outcome = execute(tmp_path, docker, replace(asked, secrets=Values({"DB": "hunter2-canary"})))
    assert outcome == Succeeded({"stdout": "yranac-2retnuh None"})
    assert "hunter2-canary" not in (tmp_path / "notes").read_text()
    assert not list((tmp_path / "work").rglob("DB"))


def test_what_its_exit_code_means_is_what_it_means_for_a_command(tmp_path: Path, docker: Path) -> None:
    failed = execute(tmp_path, docker, container(command=python("raise SystemExit('it is broken')")))
    assert isinstance(failed, Failure)
    assert (failed.error, failed.kind) == ("ExitCode1", FailureClass.TRANSIENT)
    assert "it is broken" in failed.message
    assert isinstance(execute(tmp_path, docker, container(command=python("raise SystemExit(99)"))), Skipped)


@pytest.mark.parametrize(
    ("image", "error", "kind"),
    [("missing", "ImagePull", FailureClass.PERMANENT), ("busy", "NotStarted", FailureClass.TRANSIENT)],
)
def test_an_image_that_is_not_there_is_permanent_and_an_engine_that_is_not_is_transient(
    tmp_path: Path, docker: Path, image: str, error: str, kind: FailureClass
) -> None:
    outcome = execute(tmp_path, docker, container(image=image, command=["x"]))
    assert isinstance(outcome, Failure)
    assert (outcome.error, outcome.kind) == (error, kind)


def test_a_container_that_takes_too_long_or_is_cancelled_is_removed(tmp_path: Path, docker: Path) -> None:
    waits = container(command=python("import threading; threading.Event().wait()"))
    late = execute(tmp_path, docker, replace(waits, timeout=waits.timeout / 120))
    assert isinstance(late, Failure)
    assert late.error == "Timeout"
    operators = place(tmp_path, {"PATH": f"{docker.parent}:{os.environ['PATH']}"})
    outcomes: list[Outcome] = []
    thread = threading.Thread(target=lambda: outcomes.append(operators.execute(waits)))
    thread.start()
    until(lambda: len(told(tmp_path)) == 5, within_s=20, what="the container is started")
    operators.cancel(waits)
    thread.join(30)
    assert [one.error for one in outcomes if isinstance(one, Failure)] == ["Cancelled"]
    assert [words[0] for words in told(tmp_path)] == ["version", "run", "rm", "version", "run", "rm"]


def test_podman_serves_where_there_is_no_docker(tmp_path: Path) -> None:
    program = stand_in(tmp_path, "podman")
    outcome = place(tmp_path, {"PATH": str(program.parent)}).execute(container(command=python("print('by podman')")))
    assert outcome == Succeeded({"stdout": "by podman"})


def test_where_there_is_none_it_is_refused_at_save_and_at_run_with_the_reason(tmp_path: Path) -> None:
    silent = tmp_path / "silent"
    silent.mkdir()
    program = stand_in(silent, "docker", version=1)
    for path, why in (("/nowhere", "neither docker nor podman"), (str(program.parent), "does not answer")):
        there = place(tmp_path, {"PATH": path})
        with pytest.raises(InvalidInput, match=why) as refused:
            read_step({"container": {"image": "team/report:1"}}, "run", operators=there.steps)
        assert refused.value.path == "run.container"
        outcome = there.execute(container(command=["x"]))
        assert isinstance(outcome, Failure)
        assert (outcome.error, outcome.kind) == ("InvalidInput", FailureClass.PERMANENT)
        assert "--containers-as-processes" in outcome.message


class Heard:
    """A log that is read at once."""

    def __init__(self) -> None:
        self.lines: list[Line] = []

    def append(self, lines: Any) -> None:
        self.lines += lines

    def close(self, at: Any, *, lost: int = 0) -> None:
        """Nothing more comes."""


def test_as_a_process_its_command_runs_here_and_its_log_says_so(tmp_path: Path) -> None:
    log = Heard()
    there = place(tmp_path, os.environ, as_processes=True, logging=Logging(lambda _key: log))
    asked = container(entrypoint=python("import sys; print(sys.argv[1])"), command=["${run.id}"])
    assert there.execute(asked) == Succeeded({"stdout": "20261003T233000Z"})
    assert "not in the image team/report:1" in log.lines[0].text
    with pytest.raises(InvalidInput) as refused:
        read_step({"container": {"image": "team/report:1"}}, "run", operators=there.steps)
    assert refused.value.path == "run.container.command"


@pytest.mark.parametrize("as_processes", [False, True])
def test_an_image_that_is_not_listed_is_refused_at_save_and_at_run_and_its_engine_is_not_asked(
    tmp_path: Path, docker: Path, as_processes: bool
) -> None:
    images = Permitted.of(["team/*@sha256:*"], option="container-image", remedy="Start with --container-image '{}'.")
    environ = {"PATH": f"{docker.parent}:{os.environ['PATH']}"}
    there = place(tmp_path, environ, as_processes=as_processes, images=images)
    pinned = f"team/report@sha256:{'a' * 64}"
    command = python("print('hello')")
    for image in ("team/report:1", "team/report", f"others/{pinned}"):
        with pytest.raises(InvalidInput, match="--container-image") as refused:
            read_step({"container": {"image": image, "command": command}}, "run", operators=there.steps)
        assert refused.value.path == "run.container.image"
        outcome = there.execute(container(image=image, command=command))
        assert isinstance(outcome, Failure)
        assert (outcome.error, outcome.kind) == ("InvalidInput", FailureClass.PERMANENT)
    read_step({"container": {"image": pinned, "command": command}}, "run", operators=there.steps)
    assert there.execute(container(image=pinned, command=command)) == Succeeded({"stdout": "hello"})
    if not as_processes:
        assert [words[-4:] for words in told(tmp_path) if words[0] == "run"] == [[pinned, *command]]


@pytest.mark.parametrize(
    "more",
    [{"privileged": True}, {"volumes": ["/:/host"]}, {"capAdd": ["ALL"]}, {"network": "host"}, {"user": "0"}],
)
def test_there_is_no_way_to_ask_for_rights_or_for_the_machines_own_folders(
    tmp_path: Path, more: dict[str, Any]
) -> None:
    there = place(tmp_path, os.environ, as_processes=True)
    with pytest.raises(InvalidInput):
        read_step({"container": {"image": "team/report:1", "command": ["x"], **more}}, "run", operators=there.steps)


def test_a_secret_cannot_be_put_into_a_variable(tmp_path: Path) -> None:
    step = {"image": "a", "command": ["x"], "secrets": {"DB": "dsn"}, "env": {"URL": "db://${secrets.DB}"}}
    with pytest.raises(InvalidInput, match="cannot stand here"):
        read_step({"container": step}, "run")
