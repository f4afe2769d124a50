"""The examples of the page about operators are jobs, and what it lists is enough for them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from sweephand.domain.definition import parse
from sweephand.domain.targets import AWS_KINDS, Targets

PAGE = (Path(__file__).parents[3] / "docs" / "operators.md").read_text().partition("## AWS services")[2]
EXAMPLES = [block.partition("```")[0] for block in PAGE.split("```yaml\n")[1:]]
HERE = "eu-west-1:123456789012"
LISTED = Targets.of(
    [
        f"arn:aws:lambda:{HERE}:function:load-sales:*",
        f"arn:aws:sqs:{HERE}:orders",
        f"arn:aws:sns:{HERE}:news",
        f"arn:aws:events:{HERE}:event-bus/shop",
        f"arn:aws:states:{HERE}:stateMachine:nightly",
    ],
    ["glue:StartJobRun"],
)


def read(example: str) -> Any:
    return parse(YAML(typ="safe").load(example), namespace="default", now=datetime(2026, 11, 16, tzinfo=UTC))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.split()[1])
def test_an_example_can_be_saved(example: str) -> None:
    (task,) = read(example).tasks
    LISTED.check_step(task.kind, task.spec, "run")


def test_there_is_an_example_of_every_kind() -> None:
    assert {read(example).tasks[0].kind for example in EXAMPLES} == AWS_KINDS
