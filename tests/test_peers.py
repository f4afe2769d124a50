"""Holes that other schedulers had, as tests of this one; each names the place that keeps it shut in detail."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any

import pytest

from sweephand.calls import Succeeded
from sweephand.domain.job import Job, Task
from sweephand.domain.kinds import read_step
from sweephand.local.examples import EXAMPLES
from sweephand.operators import Operators
from tests.operators.calls import call, command
from tests.operators.test_command import HOSTILE

PACKAGE = Path(__file__).resolve().parent.parent / "layers/core/python/sweephand"
REVIVING = {"pickle", "marshal", "shelve", "dill", "cloudpickle", "jsonpickle"}
"""Modules that make code of data."""


def offences(source: str) -> list[str]:
    """What in a module could run what somebody stored."""
    found = []
    for node in ast.walk(ast.parse(source)):
        names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        found += [name for name in names if name.partition(".")[0] in REVIVING]
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in {"eval", "exec"}:
            found.append(node.func.id)
        if isinstance(node, ast.Attribute) and ast.unparse(node) in {"yaml.load", "yaml.unsafe_load", "yaml.full_load"}:
            found.append(ast.unparse(node))
    return found


def test_nothing_that_is_stored_is_ever_revived_as_code() -> None:
    """A task's output that the web server of another scheduler unpickled ran there."""
    found = {str(path): offences(path.read_text()) for path in PACKAGE.rglob("*.py")}
    assert {path: wrong for path, wrong in found.items() if wrong} == {}
    assert offences("import pickle\nfrom shelve import open\neval('1')\nyaml.load(x)") == [
        "pickle",
        "shelve",
        "eval",
        "yaml.load",
    ]


@pytest.mark.parametrize(
    "output",
    [
        {"__reduce__": ["os.system", ["touch hit"]]},
        {"py/object": "os.system", "py/reduce": [{"py/function": "os.system"}, ["touch hit"]]},
        {"!!python/object/apply:os.system": ["touch hit"]},
        "gASVHwAAAAAAAACMBXBvc2l4lIwGc3lzdGVtlJOUjAl0b3VjaCBoaXSUhZRSlC4=",
    ],
    ids=["reduce", "jsonpickle", "yaml", "pickle"],
)
def test_an_output_that_looks_like_an_object_is_only_data(tmp_path: Path, output: object) -> None:
    line = 'printf %s "${params.text}" > "$SWEEPHAND_OUTPUT"'
    given = command(line, shell=True, params={"text": json.dumps(output)}, cwd=str(tmp_path))
    assert Operators(tmp_path / "area").execute(given) == Succeeded(output)
    assert not (tmp_path / "hit").exists()


@pytest.mark.parametrize("definition", EXAMPLES, ids=lambda one: one["name"])
@pytest.mark.parametrize("text", HOSTILE)
def test_no_example_job_runs_what_its_parameters_say(tmp_path: Path, definition: dict[str, Any], text: str) -> None:
    """Example jobs of others handed a parameter to a shell."""
    kind, spec = read_step(definition["run"], "run")
    (tmp_path / "canary").touch()
    params = dict.fromkeys(("region", *(definition.get("params") or {})), text)
    given = call(
        kind,
        spec["value"],
        params=params,
        cwd=str(tmp_path),
        job=Job("report", (Task("main", kind, spec),)),
        **{name: value for name, value in spec.items() if name not in {"value", "cwd"}},
    )
    assert spec.get("shell") is not True
    assert isinstance(Operators(tmp_path / "area").execute(given), Succeeded)
    assert {one.name for one in tmp_path.iterdir()} == {"canary", "area"}
