"""The README is true: what it shows runs, and prints what it says."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "README.md").read_text()
PYTHON = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
SHELL = re.findall(r"```sh\n(.*?)```", TEXT, re.DOTALL)
YAML = re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL)

STOPS_WITHIN_S = 60


@pytest.fixture(scope="module", params=["sqlite", "moto"])
def environment(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The README's first command, on a port and a folder of its own; and what the others need to find it."""
    assert SHELL[0] == "make up\n"
    data = tmp_path_factory.mktemp("readme") / "data"
    variables = {**os.environ, "ARGS": f"--engine {request.param} --port 0 --data {data}", "NO_COLOR": "1"}
    process = subprocess.Popen(
        SHELL[0], shell=True, cwd=ROOT, env=variables, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        assert process.stdout is not None
        lines = (re.search(r"Sweephand is up at (\S+)", line) for line in process.stdout)
        found = next(line for line in lines if line)
        token = (data / "admin.token").read_text().strip()
        yield {**variables, "SWEEPHAND_URL": found[1], "SWEEPHAND_TOKEN": token}
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(STOPS_WITHIN_S)


def test_the_commands_run_one_after_the_other_and_show_the_run(environment: dict[str, str]) -> None:
    said = ""
    for block in SHELL[1:]:
        for command in block.splitlines():
            done = subprocess.run(
                command, shell=True, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, f"{command}: {done.stderr}"
            said += done.stdout
    assert re.search(r"beat .*succeeded", said)


@pytest.mark.parametrize("block", PYTHON, ids=range(len(PYTHON)))
def test_a_snippet_runs_and_prints_what_its_comments_say(
    block: str, environment: dict[str, str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SWEEPHAND_URL", "SWEEPHAND_TOKEN"):
        monkeypatch.setenv(name, environment[name])
    exec(compile(block, "README.md", "exec"), {})
    promised = re.findall(r"^    # (.*)$", block, re.MULTILINE)
    assert promised
    assert capsys.readouterr().out.splitlines() == promised


def test_the_job_that_it_shows_is_the_one_that_it_applies() -> None:
    assert [(ROOT / "docs/examples/beat.yaml").read_text()] == YAML


def test_every_path_it_names_exists() -> None:
    paths = re.findall(r"[`(]((?:docs|tests|bench|requirements)/[\w./-]*)[`)]", TEXT)
    assert paths
    assert [path for path in paths if not (ROOT / path).exists()] == []
