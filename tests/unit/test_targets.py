"""Which AWS resources tasks may call: how a list is read, and what it names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweephand.domain.kinds import read_step
from sweephand.domain.targets import AWS_KINDS, Arn, Remedy, Targets, check_action
from sweephand.errors import InvalidInput

QUEUES = "arn:aws:sqs:eu-west-1:123456789012:orders-*"
ANYWHERE = "arn:aws:sqs:*:123456789012:bills"
FUNCTION = "arn:aws:lambda:eu-west-1:123456789012:function:load"
VERSIONS = "arn:aws:lambda:eu-west-1:123456789012:function:save:*"
LISTED = Targets.of([QUEUES, ANYWHERE, FUNCTION, VERSIONS], ["glue:StartJobRun"], own="sweephand")


def found(kind: str, written: str, qualifier: str = "") -> str:
    return str(LISTED.find(kind, written, kind, qualifier=qualifier))


@pytest.mark.parametrize(
    ("kind", "written", "qualifier", "arn"),
    [
        ("sqs", "orders-eu", "", "arn:aws:sqs:eu-west-1:123456789012:orders-eu"),
        ("sqs", "orders-eu.fifo", "", "arn:aws:sqs:eu-west-1:123456789012:orders-eu.fifo"),
        ("sqs", "bills", "", "arn:aws:sqs:*:123456789012:bills"),
        ("sqs", "arn:aws:sqs:us-east-2:123456789012:bills", "", "arn:aws:sqs:us-east-2:123456789012:bills"),
        (
            "sqs",
            "https://sqs.eu-west-1.amazonaws.com/123456789012/orders-1",
            "",
            "arn:aws:sqs:eu-west-1:123456789012:orders-1",
        ),
        ("lambda", "load", "", FUNCTION),
        ("lambda", "save", "prod", "arn:aws:lambda:eu-west-1:123456789012:function:save:prod"),
        ("lambda", "save:$LATEST", "", "arn:aws:lambda:eu-west-1:123456789012:function:save:$LATEST"),
    ],
)
def test_a_target_is_found_by_each_of_its_names(kind: str, written: str, qualifier: str, arn: str) -> None:
    assert found(kind, written, qualifier) == arn


@pytest.mark.parametrize(
    ("kind", "written", "qualifier"),
    [
        ("sqs", "order", ""),
        ("sqs", "orders-*", ""),
        ("sqs", "orders-a/b", ""),
        ("sqs", "orders-\n", ""),
        ("sqs", "", ""),
        ("sqs", "arn:aws:sqs:eu-west-2:123456789012:orders-1", ""),
        ("sqs", "arn:aws:sqs:eu-west-1:210987654321:orders-1", ""),
        ("sqs", "arn:aws-cn:sqs:eu-west-1:123456789012:orders-1", ""),
        ("sqs", "https://sqs.eu-west-1.amazonaws.com.cn/123456789012/orders-1", ""),
        ("sqs", "https://sqs.eu-west-1.amazonaws.com@evil.test/123456789012/orders-1", ""),
        ("sqs", "https://evil.test/123456789012/orders-1", ""),
        ("sqs", FUNCTION, ""),
        ("lambda", "load", "prod"),
        ("lambda", "load:prod", ""),
        ("lambda", "save", ""),
        ("lambda", "arn:aws:lambda:eu-west-1:123456789012:layer:load", ""),
        ("sns", "orders-1", ""),
        ("stateMachine", "orders-1", ""),
        ("event", "default", ""),
        ("lambda", "sweephand-api", ""),
    ],
)
def test_anything_else_is_refused_at_its_field(kind: str, written: str, qualifier: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        found(kind, written, qualifier)
    assert refused.value.path == kind


def test_a_refusal_says_exactly_what_to_do() -> None:
    local = Targets.of([], remedy=Remedy("Start with --aws-target '{}' to allow it."))
    with pytest.raises(InvalidInput, match="--aws-target 'arn:aws:sqs:REGION:ACCOUNT:orders' to allow it"):
        local.find("sqs", "orders", "sqs")
    with pytest.raises(InvalidInput, match="List arn:aws:sns:eu-west-1:123456789012:news in the option targets"):
        LISTED.find("sns", "arn:aws:sns:eu-west-1:123456789012:news", "sns")


@pytest.mark.parametrize(
    "entry",
    [
        "*",
        "orders",
        "arn:aws:sqs:eu-west-1:*:orders",
        "arn:aws:sqs:eu-west-1::orders",
        "arn:aws:*:eu-west-1:123456789012:orders",
        "arn:aws:dynamodb:eu-west-1:123456789012:table/orders",
        "arn:aws:iam::123456789012:role/admin",
        "arn:aws:sqs:eu-west-1:123456789012:",
        "arn:aws:sqs:eu-west-1:123456789012:a b",
        "arn:aws:lambda:eu-west-1:123456789012:*",
        "arn:aws:states:eu-west-1:123456789012:execution:a:*",
        "arn:aws:sqs:eu-west-1:١٢٣٤٥٦٧٨٩٠١٢:orders",
    ],
)
def test_an_entry_that_names_nothing_or_anything_is_refused(entry: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        Targets.of([entry])
    assert refused.value.path == "targets"


@pytest.mark.parametrize(
    "action", ["glue:*", "glue", "*", "glue:Start JobRun", "iam:PassRole", "kms:Decrypt", "sts:AssumeRole", ""]
)
def test_an_action_is_named_in_full_and_none_is_about_rights(action: str) -> None:
    with pytest.raises(InvalidInput):
        check_action(action)


def test_kinds_for_which_nothing_is_listed_cannot_run() -> None:
    assert LISTED.kinds == {"sqs", "lambda", "awsSdk"}
    assert Targets().kinds == frozenset()
    assert Targets.of([FUNCTION]).kinds < AWS_KINDS


@given(st.text("ab*?:", max_size=8), st.text("ab:", max_size=8))
def test_wildcards_match_as_iam_has_them(pattern: str, resource: str) -> None:
    def matches(wild: str, text: str) -> bool:
        if not wild:
            return not text
        if wild[0] == "*":
            return matches(wild[1:], text) or (bool(text) and matches(wild, text[1:]))
        return bool(text) and wild[0] in {"?", text[0]} and matches(wild[1:], text[1:])

    assert Arn("aws", "sqs", "eu", "1", pattern).names(resource) == matches(pattern, resource)


@pytest.mark.parametrize(
    "step",
    [
        {"lambda": "load", "roleArn": "arn:aws:iam::123456789012:role/admin"},
        {"stateMachine": "load", "roleArn": "x"},
        {"event": {"source": "s", "type": "t", "roleArn": "x"}},
        {"awsSdk": {"service": "s", "action": "a", "roleArn": "x"}},
        {"sqs": "q", "role": "x"},
    ],
)
def test_no_step_takes_a_role(step: dict[str, object]) -> None:
    with pytest.raises(InvalidInput, match="There is no field 'role"):
        read_step(step, "run")


@pytest.mark.parametrize(
    ("step", "is_refused"),
    [
        ({"sqs": "orders-1"}, False),
        ({"sqs": "other"}, True),
        ({"sqs": "${params.queue}"}, False),
        ({"lambda": "save", "qualifier": "${params.stage}"}, False),
        ({"lambda": "save", "qualifier": "prod"}, False),
        ({"lambda": "save"}, True),
        ({"event": {"source": "s", "type": "t"}}, True),
        ({"awsSdk": {"service": "glue", "action": "StartJobRun"}}, False),
    ],
)
def test_what_could_only_be_refused_when_it_runs_is_refused_when_it_is_saved(
    step: dict[str, object], is_refused: bool
) -> None:
    kind, spec = read_step(step, "run")
    try:
        LISTED.check_step(kind, spec, "run")
    except InvalidInput:
        assert is_refused
    else:
        assert not is_refused


def test_a_call_by_boto3_is_refused_when_it_is_saved_where_none_is_listed() -> None:
    with pytest.raises(InvalidInput, match="List glue:StartJobRun in the option sdkActions"):
        Targets().check_step("awsSdk", {"service": "glue", "action": "StartJobRun"}, "run")
