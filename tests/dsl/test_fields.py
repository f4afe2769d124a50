"""Whatever a job file may say, a Python file may say too: a new field of the one is a new field of the other."""

from __future__ import annotations

from typing import Any, Final

import pytest

from sweephand.api.definitions import SCHEDULE, TASK, components
from sweephand.domain.definition import TEMPLATE_FIELDS
from sweephand.dsl.jobs import OF_THE_SCHEDULE
from sweephand.dsl.jobs import OPTIONS as OPTIONS_OF_A_JOB
from sweephand.dsl.recording import FIELDS
from sweephand.dsl.tasks import OF_THE_STEP, camel
from sweephand.dsl.tasks import OPTIONS as OPTIONS_OF_A_TASK
from tests.dsl.conftest import Compile

JOB: Final = components([])["JobDefinition"]["properties"].keys()
SAID_BY_THE_BODY: Final = {"tasks", "run", "command"}
SAID_BY_THE_CALL: Final = {"id", "run", "command", "needs", "map", "group"}
"""Of a task: by its function or step, by what it is given, by `>>`, by `.map` and by `with group(…):`."""
SAID_BY_SCHEDULE: Final = {"cron"}


def _fields_of(schedule: dict[str, Any]) -> set[str]:
    return {name for one in schedule["anyOf"] for name in one.get("properties", {})}


def test_the_schema_has_the_fields_that_are_read() -> None:
    assert {"name", "template", "with", *TEMPLATE_FIELDS} == JOB


def test_a_job_has_an_option_for_every_field_of_a_document() -> None:
    assert {camel(name) for name in OPTIONS_OF_A_JOB} - set(map(camel, OF_THE_SCHEDULE)) == JOB - SAID_BY_THE_BODY


def test_a_job_has_an_option_for_every_field_of_a_schedule() -> None:
    assert set(map(camel, OF_THE_SCHEDULE)) == _fields_of(SCHEDULE) - SAID_BY_SCHEDULE


def test_a_task_has_an_option_for_every_field_of_a_document() -> None:
    said = {camel(name) for name in FIELDS} - {"max"}  # of the map
    assert said == TASK["properties"].keys() - SAID_BY_THE_CALL
    assert set(OPTIONS_OF_A_TASK) == {"id", *FIELDS, *OF_THE_STEP}


@pytest.mark.parametrize("name", sorted(set(FIELDS) - {"max"}))
def test_what_a_step_says_of_its_task_goes_to_the_task(compile_file: Compile, name: str) -> None:
    found = compile_file(f"@job\ndef one():\n    step('a', command=['x'], {name}='said')\n")
    ((task,),) = ([*one["document"]["tasks"]] for one in found["jobs"])
    assert task == {"id": "a", "run": {"command": ["x"]}, camel(name): "said"}
