"""Job files of a test's own, run in this process."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from sweephand.dsl.files import compiled

Compile = Callable[..., dict[str, Any]]
IMPORTS = "from sweephand import group, index, item, job, params, run, step, task\n"


@pytest.fixture
def compile_file(tmp_path: Path) -> Compile:
    """What a file of these lines says; it has the imports that every one needs in its first line."""
    before, path = set(sys.modules), list(sys.path)

    def compile_lines(source: str, **others: str) -> dict[str, Any]:
        for name, text in others.items():
            (tmp_path / f"{name}.py").write_text(dedent(text))
        file = tmp_path / "jobs_of_a_test.py"
        file.write_text(IMPORTS + dedent(source))
        try:
            return compiled(file)
        finally:
            sys.path[:] = path
            for name in set(sys.modules) - before:
                if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
                    del sys.modules[name]

    return compile_lines
