"""The examples of the page about operators that are no calls of AWS are jobs."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from sweephand.domain.definition import parse
from sweephand.domain.targets import Targets

PAGE = (Path(__file__).parents[2] / "docs" / "operators.md").read_text().partition("## AWS services")[0]
EXAMPLES = [block.partition("```")[0] for block in PAGE.split("```yaml\n")[1:]]
LISTED = Targets.of(["arn:aws:s3:::inbox/orders/*"])


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.split()[1])
def test_an_example_can_be_saved(example: str) -> None:
    job = parse(YAML(typ="safe").load(example), namespace="default", now=datetime(2026, 11, 16, tzinfo=UTC))
    LISTED.check_step("sensor", job.tasks[0].spec, "run")


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 2
