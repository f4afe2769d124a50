"""Outside a job's body, tasks and jobs are the functions that they were: users test them so."""

from __future__ import annotations

import subprocess
import sys

import pytest

import sweephand
from sweephand import group, item, job, step, task
from sweephand.errors import InvalidInput


@task(timeout="1m")
def double(number: int, by: int = 2) -> int:
    """Twice the number."""
    return number * by


@task
def total(numbers: list[int]) -> int:
    return sum(numbers)


@job(schedule="@daily")
def doubled(numbers: tuple[int, ...] = (0, 1, 2)) -> int:
    with group("all"):
        twice = double.map(numbers)
    found: int = total(twice)
    return found


def test_a_task_is_its_function() -> None:
    assert double(2) == 4
    assert double.partial(by=5)(2) == 10
    assert double.options(id="x", if_="true")(1) == 2
    assert (double.__name__, double.__doc__) == ("double", "Twice the number.")


def test_a_map_goes_through_its_list() -> None:
    assert double.map([1, 2], by=3) == [3, 6]
    assert double.map([1, 2], number=item) == [2, 4]
    with pytest.raises(InvalidInput, match="Outside a job"):
        double.map([{"n": 1}], number=item.n)


def test_a_job_runs_its_tasks_at_once() -> None:
    assert doubled() == 6
    assert doubled(numbers=(5,)) == 10


def test_a_document_can_be_made_again_and_again() -> None:
    assert doubled.document() == doubled.document()
    assert [one["id"] for one in doubled.document()["tasks"]] == ["double", "total"]
    assert doubled() == 6


def test_a_body_that_failed_leaves_nothing_under_way() -> None:
    @job
    def broken() -> None:
        total([])
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        broken.document()
    assert double(2) == 4


def test_a_step_needs_a_job() -> None:
    with pytest.raises(InvalidInput, match="stands in the body of a job"):
        step("a", command=["true"])


def test_every_name_of_the_package_is_there() -> None:
    assert {name for name in sweephand.__all__ if not hasattr(sweephand, name)} == set()


def test_the_package_and_job_files_need_only_the_standard_library() -> None:
    program = (
        "import sys; before = set(sys.modules); from sweephand import checkpoint, job, task, step, group, params;"
        "new = {name.partition('.')[0] for name in set(sys.modules) - before};"
        "print(sorted(new - sys.stdlib_module_names - {'sweephand'}), 'inspect' in new, type(task).__name__)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[] False _Tasks"
