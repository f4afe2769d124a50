"""The README is true: what it shows runs, and prints what it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
BLOCKS = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_a_snippet_runs_and_prints_what_its_comments_say(block: str, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(block, "README.md", "exec"), {})
    promised = re.findall(r"^    # (\d{4}-.*)$", block, re.MULTILINE)
    assert promised
    assert capsys.readouterr().out.splitlines() == promised


def test_every_path_it_names_exists() -> None:
    text = (ROOT / "README.md").read_text()
    paths = re.findall(r"`((?:docs|tests|bench|requirements)/[\w./-]*)`", text)
    assert paths
    assert [path for path in paths if not (ROOT / path).exists()] == []
