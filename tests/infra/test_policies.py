"""Who may do what: no more than is written in `infra/rights.py`, and nothing for everybody."""

from __future__ import annotations

import json
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any

from infra.rights import LOG, RIGHTS
from sweephand.topology import FUNCTIONS, MACHINES, Names
from tests.infra.assembly import Assembly, Resource, listed, statements_of, texts_of

NAMES = Names()
WITHOUT_A_RESOURCE = {
    "ecr:GetAuthorizationToken": "the service authorization reference names no resource for it",
    "ecs:ListTasks": "a condition names the cluster, which is all that a policy can say of it",
    "ecs:RegisterTaskDefinition": "a definition has no name before it is registered",
    "logs:CreateLogDelivery": "log deliveries have no names that a policy could give",
    "logs:DeleteLogDelivery": "the same",
    "logs:DescribeLogGroups": "the same",
    "logs:DescribeResourcePolicies": "the same",
    "logs:GetLogDelivery": "the same",
    "logs:ListLogDeliveries": "the same",
    "logs:PutResourcePolicy": "the same",
    "logs:UpdateLogDelivery": "the same",
}
"""Actions that AWS lets nobody narrow down, and why."""


def _allowed(assembly: Assembly) -> Iterator[tuple[Resource, Any]]:
    for resource in assembly.resources:
        for statement in statements_of(resource):
            if statement["Effect"] == "Allow":
                yield resource, statement


def _role(assembly: Assembly, function: str) -> Resource:
    (found,) = (one for one in assembly.of("Lambda::Function") if one.properties["FunctionName"] == NAMES.of(function))
    id_ = found.properties["Role"]["Fn::GetAtt"][0]
    (role,) = (one for one in assembly.of("IAM::Role") if one.id == id_)
    return role


def _actions(role: Resource) -> set[str]:
    return {action for statement in statements_of(role) for action in listed(statement.get("Action", []))}


def test_no_policy_allows_everybody(assembly: Assembly) -> None:
    for resource, statement in _allowed(assembly):
        principal = statement.get("Principal", {})
        assert principal != "*", resource
        assert "*" not in listed(principal.get("AWS", []) if isinstance(principal, dict) else []), resource


def test_a_service_that_is_let_in_acts_for_this_account_only(assembly: Assembly) -> None:
    for resource, statement in _allowed(assembly):
        if "Service" in statement.get("Principal", {}):
            keys = {key for test in statement.get("Condition", {}).values() for key in test}
            narrowing = {"aws:SourceAccount", "aws:SourceArn", "AWS:SourceArn", "kms:EncryptionContext:aws:logs:arn"}
            assert keys & narrowing, (resource, statement)


def test_no_role_may_do_something_to_everything(assembly: Assembly) -> None:
    for resource, statement in _allowed(assembly):
        if resource.kind != "AWS::KMS::Key" and "*" in listed(statement["Resource"]):
            assert set(listed(statement["Action"])) <= WITHOUT_A_RESOURCE.keys(), resource


def test_no_role_may_do_everything_to_something(assembly: Assembly) -> None:
    for resource, statement in _allowed(assembly):
        if resource.kind != "AWS::KMS::Key":
            assert not [action for action in listed(statement["Action"]) if action.endswith("*")], resource


def test_the_key_itself_gives_everything_only_to_the_policies_of_its_account(assembly: Assembly) -> None:
    all_of_it = [one for one in statements_of(assembly.only("KMS::Key")) if one["Action"] == "kms:*"]
    (only,) = all_of_it
    assert only["Principal"]["AWS"]["Fn::Join"][1][-1] == ":root"


def test_every_role_is_taken_by_one_service(assembly: Assembly) -> None:
    for role in assembly.of("IAM::Role"):
        (statement,) = role.properties["AssumeRolePolicyDocument"]["Statement"]
        assert set(statement["Principal"]) == {"Service"}, role
        assert isinstance(statement["Principal"]["Service"], str), role


def test_users_code_runs_with_no_right_but_to_read_code_write_logs_and_artifacts_and_open_its_orders(
    assembly: Assembly,
) -> None:
    role = _role(assembly, "execute")
    assert _actions(role) == {*LOG, "s3:PutObject", "s3:GetObject", "kms:GenerateDataKey", "kms:Decrypt"}
    opens = [one["Condition"]["StringEquals"] for one in statements_of(role) if "kms:Decrypt" in listed(one["Action"])]
    assert [*filter(lambda one: "kms:ViaService" not in one, opens)] == [{"kms:EncryptionContext:sweephand": "order"}]
    assert len(opens) == 2  # the other is what S3 does with the key for whoever reads code
    (reads,) = (one for one in statements_of(role) if "s3:GetObject" in listed(one["Action"]))
    assert "/code/*" in set(texts_of(reads["Resource"]))


def test_calls_for_tasks_are_made_with_no_right_where_nothing_is_listed(assembly: Assembly) -> None:
    statements = list(statements_of(_role(assembly, "call")))
    allowed = {action for one in statements if one["Effect"] == "Allow" for action in listed(one["Action"])}
    assert allowed == set(LOG)


def test_calls_for_tasks_can_never_reach_what_is_ours(assembly: Assembly) -> None:
    denied = [one for one in statements_of(_role(assembly, "call")) if one["Effect"] == "Deny"]
    (by_name,) = (one for one in denied if one.get("Action") == "*")
    patterns = ["".join(part for part in one["Fn::Join"][1] if isinstance(part, str)) for one in by_name["Resource"]]
    for kind, by, named in (
        ("Lambda::Function", "FunctionName", ":lambda:*::function:{}"),
        ("SQS::Queue", "QueueName", ":sqs:*::{}"),
        ("SNS::Topic", "TopicName", ":sns:*::{}"),
        ("Events::EventBus", "Name", ":events:*::event-bus/{}"),
        ("StepFunctions::StateMachine", "StateMachineName", ":states:*::stateMachine:{}"),
        ("DynamoDB::GlobalTable", "TableName", ":dynamodb:*::table/{}"),
        ("KinesisFirehose::DeliveryStream", "DeliveryStreamName", ":firehose:*::deliverystream/{}"),
    ):
        for name in assembly.named(kind, by):
            arn = f"arn:{named.format(name)}"
            assert any(fnmatchcase(arn, pattern) for pattern in patterns), arn
    (by_tag,) = (one for one in denied if "Condition" in one)
    assert by_tag["Condition"] == {"StringEquals": {"aws:ResourceTag/Deployment": "sweephand"}}
    assert (by_tag["Resource"], by_tag["NotAction"]) == ("*", ["kms:*", "logs:*"])


def test_every_function_has_its_rights_and_what_its_triggers_need(assembly: Assembly) -> None:
    for function in FUNCTIONS:
        rights = RIGHTS[function.name]
        written = {action for some in (rights.tables, rights.queues) for actions in some.values() for action in actions}
        services = {"dynamodb", "sqs"}
        found = {action for action in _actions(_role(assembly, function.name)) if action.split(":")[0] in services}
        assert written <= found
        more = {action.split(":")[1] for action in found - written}
        brought = {"ReceiveMessage", "DeleteMessage", "GetQueueAttributes", "SendMessage"}
        brought |= {"DescribeStream", "GetRecords", "GetShardIterator", "ListStreams"}
        assert more <= brought, function.name


def test_rights_are_on_the_very_tables_they_are_written_for(assembly: Assembly) -> None:
    tables = {
        resource.id: name.removeprefix("sweephand-")
        for name, resource in assembly.named("DynamoDB::GlobalTable", "TableName").items()
    }
    for function in FUNCTIONS:
        found: dict[str, set[str]] = {}
        for statement in statements_of(_role(assembly, function.name)):
            for resource in listed(statement["Resource"]):
                id_, attribute = resource.get("Fn::GetAtt", ("", "")) if isinstance(resource, dict) else ("", "")
                if id_ in tables and attribute == "Arn":
                    found.setdefault(tables[id_], set()).update(listed(statement["Action"]))
        assert found == {table: set(actions) for table, actions in RIGHTS[function.name].tables.items()}, function.name


def test_only_attempt_starts_tasks_and_only_machines_call_functions_back(assembly: Assembly) -> None:
    calling = {
        resource.id
        for resource, statement in _allowed(assembly)
        if "lambda:InvokeFunction" in listed(statement["Action"])
    }
    machines = {one.properties["RoleArn"]["Fn::GetAtt"][0] for one in assembly.of("StepFunctions::StateMachine")}
    schedules = {one.properties["Target"]["RoleArn"]["Fn::GetAtt"][0] for one in assembly.of("Scheduler::Schedule")}
    assert len(machines) == len(MACHINES)
    assert calling == {_role(assembly, "attempt").id} | machines | schedules


def test_executions_are_started_and_woken_by_those_who_must(assembly: Assembly) -> None:
    may = {
        (action, json.dumps(resource).partition("stateMachine:")[2].strip('"]}'), role.id)
        for role, statement in _allowed(assembly)
        for action in listed(statement["Action"])
        for resource in listed(statement["Resource"])
        if action in {"states:StartExecution", "states:SendTaskSuccess"}
    }
    roles = {name: _role(assembly, name).id for name in RIGHTS}
    waking = {"attempt", "advance", "project", "watch", "api"}
    assert may == {
        ("states:StartExecution", "sweephand-execute", roles["attempt"]),
        ("states:StartExecution", "sweephand-dag_run", roles["attempt"]),
        ("states:StartExecution", "sweephand-dag_run", roles["advance"]),
        ("states:StartExecution", "sweephand-backfill", roles["api"]),
        ("states:StartExecution", "sweephand-backfill", roles["backfill"]),
        *(("states:SendTaskSuccess", "sweephand-dag_run", roles[name]) for name in waking),
    }


def test_functions_use_the_key_only_by_way_of_the_services_that_hold_data_or_for_secrets(assembly: Assembly) -> None:
    for function in FUNCTIONS:
        purposes = set()
        for statement in statements_of(_role(assembly, function.name)):
            if any(action.startswith("kms:") for action in listed(statement.get("Action", []))):
                condition = statement["Condition"]["StringEquals"]
                if "kms:ViaService" not in condition:
                    purpose = condition["kms:EncryptionContext:sweephand"]
                    purposes |= {(action, purpose) for action in listed(statement["Action"])}
        rights = RIGHTS[function.name]
        wanted = {("kms:GenerateDataKey", purpose) for purpose in rights.seals}
        assert purposes == wanted | {("kms:Decrypt", purpose) for purpose in rights.opens}, function.name
    assert [name for name, rights in RIGHTS.items() if "secret" in rights.opens] == ["attempt", "api"]


def test_whoever_may_call_a_function_is_named(assembly: Assembly) -> None:
    for permission in assembly.of("Lambda::Permission"):
        assert permission.properties["Principal"] in {"apigateway.amazonaws.com", "events.amazonaws.com"}, permission
        assert permission.properties["SourceArn"], permission
