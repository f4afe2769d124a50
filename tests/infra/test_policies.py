"""Who may do what: no more than is written in `infra/rights.py`, and nothing for everybody."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from infra.rights import LOG, RIGHTS
from sweephand.topology import FUNCTIONS, Names
from tests.infra.assembly import Assembly, Resource, listed, statements_of

NAMES = Names()
WITHOUT_A_RESOURCE = {
    "ecr:GetAuthorizationToken": "the service authorization reference names no resource for it",
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
    return {action for statement in statements_of(role) for action in listed(statement["Action"])}


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


def test_users_code_runs_with_no_right_but_to_log(assembly: Assembly) -> None:
    assert _actions(_role(assembly, "execute")) == set(LOG)


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


def test_only_attempt_starts_tasks_and_only_the_machine_calls_it_back(assembly: Assembly) -> None:
    calling = {
        resource.id
        for resource, statement in _allowed(assembly)
        if "lambda:InvokeFunction" in listed(statement["Action"])
    }
    machine = assembly.only("StepFunctions::StateMachine").properties["RoleArn"]["Fn::GetAtt"][0]
    schedules = {one.properties["Target"]["RoleArn"]["Fn::GetAtt"][0] for one in assembly.of("Scheduler::Schedule")}
    assert calling == {_role(assembly, "attempt").id, machine} | schedules
    starting = {r.id for r, statement in _allowed(assembly) if "states:StartExecution" in listed(statement["Action"])}
    assert starting == {_role(assembly, "attempt").id}


def test_functions_use_the_key_only_by_way_of_the_services_that_hold_data(assembly: Assembly) -> None:
    for function in FUNCTIONS:
        for statement in statements_of(_role(assembly, function.name)):
            if any(action.startswith("kms:") for action in listed(statement["Action"])):
                assert "kms:ViaService" in statement["Condition"]["StringEquals"], function.name


def test_whoever_may_call_a_function_is_named(assembly: Assembly) -> None:
    for permission in assembly.of("Lambda::Permission"):
        assert permission.properties["Principal"] == "apigateway.amazonaws.com", permission
        assert permission.properties["SourceArn"], permission
