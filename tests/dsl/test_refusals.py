"""What a Python job file cannot say: each with its line, and with what would be right."""

from __future__ import annotations

import re
from pathlib import Path
from textwrap import dedent

import pytest

from tests.dsl.conftest import Compile

TASKS = """
@task
def extract(): ...
@task
def load(raw, mode="full"): ...
"""

WRONG: dict[str, tuple[str, int, str]] = {
    "if": ("@job\ndef one():\n    if extract(): load(1)\n", 4, r"whether it is true.*if_=.*@task.branch"),
    "and": ("@job\ndef one():\n    raw = extract()\n    load(1 if raw.n > 1 and raw.n else 2)\n", 5, r"& \| ~"),
    "for": ("@job\ndef one():\n    for file in extract(): load(file)\n", 4, r"gone through.*\.map"),
    "len": ("@job\ndef one():\n    load(len(extract()))\n", 4, "no length yet"),
    "range": ("@job\ndef one():\n    load([*range(extract().n)])\n", 4, "is no number yet"),
    "in": ("@job\ndef one():\n    raw = extract()\n    load('x' in raw)\n", 5, "cannot be searched"),
    "method": ("@job\ndef one():\n    load(extract().strip())\n", 4, "is no function"),
    "format": ("@job\ndef one():\n    load(f'{extract():>3}')\n", 4, "cannot be formatted as '>3'"),
    "field": ("@job\ndef one():\n    load(extract()['a b'])\n", 4, "cannot name the field 'a b'"),
    "key": ("@job\ndef one():\n    load(extract()[1.5])\n", 4, "not by a float"),
    "set": ("@job\ndef one():\n    load({1})\n", 4, r"'raw' of load is a set, which JSON does not have"),
    "deep": ("@job\ndef one():\n    load({'a': [object()]})\n", 4, r"'raw' of load\['a'\]\[0\] is a object"),
    "nan": ("@job\ndef one():\n    load(float('nan'))\n", 4, "is nan, which is no number in JSON"),
    "keys": ("@job\ndef one():\n    load({1: 2})\n", 4, "in JSON, keys are text"),
    "naive": (
        "from datetime import datetime\n@job\ndef one():\n    load(datetime(2026, 1, 1))\n",
        5,
        "a time without a zone",
    ),
    "condition": ("@job\ndef one():\n    load(extract().n > 1)\n", 4, "conditions are for `if_=`"),
    "uncalled": ("@job\ndef one():\n    load(extract)\n", 4, r"the task 'extract' itself: call it, extract\(…\)"),
    "uncalled order": ("@job\ndef one():\n    extract() >> load\n", 4, "the task 'load' itself: call it"),
    "uncalled first": ("@job\ndef one():\n    extract >> load(1)\n", 4, "the task 'extract' itself: call it"),
    "order of params": ("@job\ndef one():\n    params.x >> load(1)\n", 4, "is no task"),
    "order of text": ("@job\ndef one():\n    extract() >> 'load'\n", 4, "only tasks and groups"),
    "twice": ("@job\ndef one():\n    extract()\n    extract()\n", 5, r"from line 4: .*options\(id='extract-2'\)"),
    "itself": ("@job\ndef one():\n    a = extract()\n    a >> a\n", 5, "cannot come after itself"),
    "circle": (
        "@job\ndef one():\n    a = extract()\n    b = load(a)\n    b >> a\n",
        4,
        "No task can begin: 'extract' needs 'load' needs 'extract'",
    ),
    "nowhere": (
        "@job\ndef one():\n    load('${tasks.extrct.output}')\n    extract()\n",
        4,
        "no task 'extrct'.*'extract'",
    ),
    "too many": ("@job\ndef one():\n    load(1, 2, 3)\n", 4, r"load\(raw, mode='full'\) cannot be called like this"),
    "missing": ("@job\ndef one():\n    load()\n", 4, "missing a required argument: 'raw'"),
    "map of nothing": ("@job\ndef one():\n    extract.map([1])\n", 4, "takes nothing that an item"),
    "map over text": ("@job\ndef one():\n    load.map(3)\n", 4, "not over a int"),
    "max": ("@job\ndef one():\n    load.options(max=3)(1)\n", 4, "this task is not mapped"),
    "option": ("@task(timout='1m')\ndef x(): ...\n", 2, "no option 'timout': did you mean 'timeout'"),
    "late option": ("@job\ndef one():\n    load.options(whn='all_done')(1)\n", 4, "no option 'whn'"),
    "job option": ("@job(schedul='@daily')\ndef one(): extract()\n", 2, "no option 'schedul': did you mean 'schedule'"),
    "empty": ("@job\ndef one(): pass\n", 2, "calls no task"),
    "required": ("@job\ndef one(region): extract()\n", 2, "The param 'region' of job 'one' has no value"),
    "starred": ("@job\ndef one(*regions): extract()\n", 2, "params of a job have names"),
    "name": ("@job(name='a b')\ndef one(): extract()\n", 2, "'a b' is no name of a job"),
    "id": ("@job\ndef one():\n    step('a b', command=['x'])\n", 4, "'a b' is no id of a task"),
    "nothing to run": ("@job\ndef one():\n    step('a')\n", 4, "says nothing to run"),
    "run twice": ("@job\ndef one():\n    step('a', run={'command': ['x']}, env={})\n", 4, "put env into it"),
    "group": ("@job\ndef one():\n    with group('a b'): extract()\n", 4, "no name of a group"),
    "empty group": (
        "@job\ndef one():\n    with group('a') as a: pass\n    a >> extract()\n",
        5,
        "no task in the group",
    ),
    "step outside": ("step('a', command=['x'])\n", 2, "stands in the body of a job"),
    "async": ("@task\nasync def x(): ...\n", 2, "'x' is async"),
    "yields": ("@task\ndef x(): yield 1\n", 2, "'x' yields"),
    "no function": ("task(3)\n", 2, "stands before a function"),
    "task of a task": ("@task\n@task\ndef x(): ...\n", 2, r"a task already: .*\.options"),
    "inner": (
        "def made():\n    @task\n    def inner(): ...\n    return inner\n@job\ndef one():\n    made()()\n",
        3,
        "defined at the top of a module",
    ),
    "lambda": ("nameless = task(lambda: 1)\n@job\ndef one():\n    nameless()\n", 2, "a name of its own"),
    "raises": ("@job\ndef one():\n    extract()\n    1 / 0\n", 5, "ZeroDivisionError: division by zero"),
    "import": ("import no_such_module_here\n", 2, "ModuleNotFoundError: No module named 'no_such_module_here'"),
    "exit": ("raise SystemExit\n", 2, "It raised SystemExit"),
    "syntax": ("def (:\n", 2, "It is not Python"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_told_with_its_line(compile_file: Compile, tmp_path: Path, case: str) -> None:
    source, line, message = WRONG[case]
    found = compile_file(dedent(source) + TASKS)
    ((where, said),) = found["errors"]
    assert where == f"{tmp_path / 'jobs_of_a_test.py'}:{line}", said
    assert re.search(message, said), said


def test_every_job_of_a_file_is_looked_at(compile_file: Compile) -> None:
    found = compile_file("@job\ndef one(): pass\n@job\ndef two(): load({1})\n@job\ndef three(): extract()\n" + TASKS)
    assert [said.partition(" ")[0] for _, said in found["errors"]] == ["The", "'raw'"]
    assert "jobs" not in found


def test_an_error_in_a_module_of_the_folder_is_told_with_that_modules_line(
    compile_file: Compile, tmp_path: Path
) -> None:
    found = compile_file("import broken_part\n" + TASKS, broken_part="x = 1\ny = x.z\n")
    assert found["errors"] == [
        [f"{tmp_path / 'broken_part.py'}:2", "AttributeError: 'int' object has no attribute 'z'"]
    ]


def test_a_file_that_is_named_like_a_module_is_refused(tmp_path: Path) -> None:
    from sweephand.dsl.files import compiled

    (tmp_path / "json.py").write_text("")
    ((where, said),) = compiled(tmp_path / "json.py")["errors"]
    assert (where, "give the file another name" in said) == (str(tmp_path / "json.py"), True)
    (tmp_path / "a.b.py").write_text("")
    assert "no dot" in compiled(tmp_path / "a.b.py")["errors"][0][1]
