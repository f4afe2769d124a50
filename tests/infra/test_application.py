"""What the stateless stack promises, a promise at a time."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from infra.node import NODE
from infra.rights import LOG
from sweephand.local.site import PERMISSIONS, POLICY
from sweephand.settings import Settings
from sweephand.topology import FUNCTIONS, MACHINES, UNDELIVERED, Changes, Every, Happens, Messages, Names
from tests.infra.assembly import Assembly, Resource, listed, statements_of, synthesized, texts_of

NAMES = Names()
PUBLISHED = "CDKBucketDeployment"


PUBLISHER = NAMES.of("publish")
"""What CDK brings to publish the console with; it runs at deployments only."""


def _functions(assembly: Assembly) -> dict[str, Resource]:
    found = assembly.named("Lambda::Function", "FunctionName")
    return {name: function for name, function in found.items() if name != PUBLISHER}


def _arn(resource: Resource) -> dict[str, Any]:
    return {"Fn::GetAtt": [resource.id, "Arn"]}


def _undelivered(assembly: Assembly) -> dict[str, Any]:
    return _arn(assembly.named("SQS::Queue", "QueueName")[NAMES.of(UNDELIVERED)])


def _key(assembly: Assembly) -> dict[str, Any]:
    return _arn(assembly.only("KMS::Key"))


def test_the_functions_are_those_of_the_topology_and_no_other_runs_beside_them(assembly: Assembly) -> None:
    found = {
        name: (function.properties["Timeout"], function.properties["MemorySize"], function.properties["Handler"])
        for name, function in _functions(assembly).items()
    }
    assert found == {
        NAMES.function(one): (one.timeout.total_seconds(), one.memory_mb, "handler.handler") for one in FUNCTIONS
    }


def test_every_function_runs_on_arm_with_both_layers_and_tells_its_log_in_json(assembly: Assembly) -> None:
    for function in _functions(assembly).values():
        assert function.properties["Architectures"] == ["arm64"], function
        assert len(function.properties["Layers"]) == 2, function
        assert function.properties["LoggingConfig"]["LogFormat"] == "JSON", function


def test_every_function_is_encrypted_with_our_key(assembly: Assembly) -> None:
    for function in assembly.of("Lambda::Function"):
        assert function.properties["KmsKeyArn"] == _key(assembly), function


def test_every_function_has_a_role_and_a_log_group_of_its_own(assembly: Assembly) -> None:
    functions = _functions(assembly).values()
    roles = {json.dumps(function.properties["Role"]) for function in functions}
    groups = {json.dumps(function.properties["LoggingConfig"]["LogGroup"]) for function in functions}
    assert len(roles) == len(groups) == len(functions) == len(FUNCTIONS)


def test_no_concurrency_is_reserved_and_none_is_provisioned(assembly: Assembly) -> None:
    assert not [one for one in assembly.of("Lambda::Function") if "ReservedConcurrentExecutions" in one.properties]
    assert not [one for one in assembly.resources if "ProvisionedConcurrencyConfig" in one.properties]


def test_every_function_reads_its_environment_without_complaint_and_execute_knows_only_where_to_write(
    assembly: Assembly,
) -> None:
    for name, function in _functions(assembly).items():
        variables = function.properties.get("Environment", {}).get("Variables", {})
        if name == "sweephand-execute":
            assert variables.keys() == {"SWEEPHAND_NAME", "SWEEPHAND_ARTIFACTS"}
        else:
            plain = {key: value if isinstance(value, str) else "made later" for key, value in variables.items()}
            settings = Settings.from_environ(plain)
            assert (settings.name, settings.shards, settings.keep_runs_days) == ("sweephand", 8, 35), function


def test_functions_know_what_they_need_to_reach(assembly: Assembly) -> None:
    knows = {
        name.removeprefix("sweephand-"): {
            key.removeprefix("SWEEPHAND_").lower()
            for key in function.properties.get("Environment", {}).get("Variables", {})
        }
        - {"name", "shards", "keep_runs_days", "lookahead_minutes", "batch_seconds"}
        for name, function in _functions(assembly).items()
    }
    assert {name: more for name, more in knows.items() if more} == {
        "advance": {"dag_machine", "artifacts"},
        "api": {"artifacts", "agent_image", "backfill_machine"},
        "attempt": {
            *("machine", "dag_machine", "url", "artifacts", "cluster", "subnets", "security_group"),
            *("task_role", "execution_role", "agent_image"),
        },
        "authorize": {"issuer", "audience"},
        "backfill": {"backfill_machine"},
        "execute": {"artifacts"},
        "live": {"issuer", "audience", "live", "origin"},
        "scan": {"artifacts", "agent_image"},
    }


def test_every_log_group_is_encrypted_and_forgets(assembly: Assembly) -> None:
    for group in assembly.of("Logs::LogGroup"):
        assert group.properties["KmsKeyId"] == _key(assembly), group
        assert group.properties["RetentionInDays"] == 30, group


def test_the_key_lets_logs_use_it_for_every_log_group_by_its_name(assembly: Assembly) -> None:
    pattern = re.compile(r"/.*sweephand.*")
    assert not [g for g in assembly.of("Logs::LogGroup") if not pattern.fullmatch(g.properties["LogGroupName"])]


def test_every_schedule_of_the_topology_fires_its_function_and_what_fails_is_put_aside(assembly: Assembly) -> None:
    schedules = assembly.named("Scheduler::Schedule", "Name")
    expected = {
        NAMES.function(function): trigger
        for function in FUNCTIONS
        for trigger in function.triggers
        if isinstance(trigger, Every)
    }
    assert schedules.keys() == expected.keys()
    for name, trigger in expected.items():
        found = schedules[name].properties
        minutes = int(trigger.period.total_seconds()) // 60
        assert found["ScheduleExpression"] in {f"rate({minutes} minutes)", f"rate({minutes} minute)"}
        assert found["Target"]["Arn"] == _arn(_functions(assembly)[name])
        assert found["Target"]["DeadLetterConfig"] == {"Arn": _undelivered(assembly)}
        assert found["Target"]["RetryPolicy"]["MaximumRetryAttempts"] <= 3
        # The schedule only hands it over: what the function then fails at is put aside by Lambda.
        dead = _functions(assembly)[name].properties["DeadLetterConfig"]
        assert dead == {"TargetArn": _undelivered(assembly)}


def _sources(assembly: Assembly) -> dict[tuple[str, str], dict[str, Any]]:
    """By function and what feeds it."""
    names = {function.id: name for name, function in _functions(assembly).items()}
    sources = {}
    for source in assembly.of("Lambda::EventSourceMapping"):
        function = names[source.properties["FunctionName"]["Fn::GetAtt"][0]]
        feed, _ = source.properties["EventSourceArn"]["Fn::GetAtt"]
        sources[function, feed] = dict(source.properties)
    return sources


def test_every_lane_feeds_its_function_bounded_and_message_by_message(assembly: Assembly) -> None:
    queues = assembly.named("SQS::Queue", "QueueName")
    sources = _sources(assembly)
    for function in FUNCTIONS:
        for trigger in function.triggers:
            if isinstance(trigger, Messages):
                source = sources[NAMES.function(function), queues[NAMES.queue(trigger.queue)].id]
                assert source["ScalingConfig"] == {"MaximumConcurrency": trigger.at_once}
                assert source["BatchSize"] == trigger.batch
                assert source["FunctionResponseTypes"] == ["ReportBatchItemFailures"]


def test_changes_reach_their_functions_and_what_cannot_be_dealt_with_is_put_aside(assembly: Assembly) -> None:
    tables = assembly.named("DynamoDB::GlobalTable", "TableName")
    sources = _sources(assembly)
    for function in FUNCTIONS:
        for trigger in function.triggers:
            if isinstance(trigger, Changes):
                source = sources[NAMES.function(function), tables[NAMES.table(trigger.table)].id]
                filters = [json.loads(one["Pattern"]) for one in source["FilterCriteria"]["Filters"]]
                assert filters == list(trigger.patterns)
                assert source["BisectBatchOnFunctionError"] is True
                assert source["MaximumRetryAttempts"] == trigger.attempts - 1
                assert source["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
                assert source["DestinationConfig"] == {"OnFailure": {"Destination": _undelivered(assembly)}}
                assert source["StartingPosition"] == "TRIM_HORIZON"


def test_nothing_feeds_a_function_that_the_topology_does_not_name(assembly: Assembly) -> None:
    triggers = [t for function in FUNCTIONS for t in function.triggers if isinstance(t, Messages | Changes)]
    assert len(assembly.of("Lambda::EventSourceMapping")) == len(triggers)
    happens = [t for function in FUNCTIONS for t in function.triggers if isinstance(t, Happens)]
    told = ("FunctionsWatch", "FunctionsScan")
    rules = [
        rule
        for rule in assembly.of("Events::Rule")
        if any(name in json.dumps(rule.properties["Targets"]) for name in told)
    ]
    others = [rule for rule in assembly.of("Events::Rule") if rule not in rules]
    assert len(rules) == len(happens)
    assert [rule.properties["EventPattern"]["source"] for rule in others] == [["aws.states"]]


def test_the_machines_are_those_of_the_topology_encrypted_and_logged(assembly: Assembly) -> None:
    machines = assembly.named("StepFunctions::StateMachine", "StateMachineName")
    assert machines.keys() == {NAMES.machine(machine) for machine in MACHINES}
    for machine in MACHINES:
        found = machines[NAMES.machine(machine)].properties
        assert found["EncryptionConfiguration"]["KmsKeyId"] == _key(assembly)
        assert found["LoggingConfiguration"]["Level"] == "ALL"
        assert found["LoggingConfiguration"]["IncludeExecutionData"] is False
        called = {name: _arn(_functions(assembly)[NAMES.of(name)]) for name in machine.calls}
        assert found["DefinitionSubstitutions"] == called


def test_every_call_of_the_api_is_authorized_except_two_public_answers(assembly: Assembly) -> None:
    resources = {resource.id: resource.properties for resource in assembly.of("ApiGateway::Resource")}

    def path(id_: str) -> str:
        parent = resources[id_]["ParentId"]
        above = path(parent["Ref"]) if parent.get("Ref") in resources else ""
        return f"{above}/{resources[id_]['PathPart']}"

    kinds = {
        (method.properties["HttpMethod"], path(method.properties["ResourceId"]["Ref"])): method.properties[
            "AuthorizationType"
        ]
        for method in assembly.of("ApiGateway::Method")
    }
    assert {call for call, kind in kinds.items() if kind == "NONE"} == {("GET", "/v1/health"), ("GET", "/v1/jwks.json")}
    assert {kind for kind in kinds.values() if kind != "NONE"} == {"CUSTOM"}
    assert ("ANY", "/{proxy+}") in kinds


def test_no_answer_of_the_authorizer_is_kept_for_another_namespace(assembly: Assembly) -> None:
    authorizer = assembly.only("ApiGateway::Authorizer").properties
    assert authorizer["AuthorizerResultTtlInSeconds"] == 0
    assert authorizer["IdentitySource"] == "method.request.header.Authorization"


def test_the_api_is_limited_and_every_call_is_logged_with_its_error(assembly: Assembly) -> None:
    stage = assembly.only("ApiGateway::Stage").properties
    (settings,) = stage["MethodSettings"]
    assert settings["ThrottlingRateLimit"] > 0
    assert settings["ThrottlingBurstLimit"] > 0
    assert {"status", "caller", "namespace", "error"} <= json.loads(stage["AccessLogSetting"]["Format"]).keys()


def test_whatever_the_gateway_answers_by_itself_is_a_problem_document(assembly: Assembly) -> None:
    found = {
        answer.properties["ResponseType"]: answer.properties for answer in assembly.of("ApiGateway::GatewayResponse")
    }
    assert {"UNAUTHORIZED", "ACCESS_DENIED", "THROTTLED", "DEFAULT_4XX", "DEFAULT_5XX"} <= found.keys()
    for kind, answer in found.items():
        problem = json.loads(answer["ResponseTemplates"]["application/json"])
        header = answer["ResponseParameters"]["gatewayresponse.header.Content-Type"]
        assert header == "'application/problem+json'", kind
        assert problem["type"] == "about:blank", kind
        assert str(problem.get("status", "")) == answer.get("StatusCode", ""), kind


def test_live_connections_are_limited_and_logged(assembly: Assembly) -> None:
    stage = assembly.only("ApiGatewayV2::Stage").properties
    assert stage["StageName"] == "live"
    assert stage["DefaultRouteSettings"]["ThrottlingRateLimit"] > 0
    assert stage["AccessLogSettings"]["DestinationArn"]
    routes = {route.properties["RouteKey"] for route in assembly.of("ApiGatewayV2::Route")}
    assert routes == {"$connect", "$disconnect", "$default"}


def test_one_origin_serves_console_api_and_live_and_caches_only_the_console(assembly: Assembly) -> None:
    front = assembly.only("CloudFront::Distribution").properties["DistributionConfig"]
    uncached = "4135ea2d-6df8-44a3-9df3-4b5a84be39ad"  # AWS's own policy CachingDisabled
    behaviours = {one["PathPattern"]: one for one in front["CacheBehaviors"]}
    assert behaviours.keys() == {"/api/*", "/live"}
    for one in behaviours.values():
        assert one["CachePolicyId"] == uncached
        assert one["ViewerProtocolPolicy"] == "https-only"
        assert one["ResponseHeadersPolicyId"]
    assert front["DefaultCacheBehavior"]["CachePolicyId"] != uncached
    assert front["DefaultCacheBehavior"]["ViewerProtocolPolicy"] == "redirect-to-https"
    assert front["Logging"]
    stages = {assembly.only("ApiGateway::Stage").properties["StageName"], "live"}
    assert {pattern.split("/")[1] for pattern in behaviours} == stages


def test_the_console_bucket_is_read_by_the_distribution_and_by_nobody_else(assembly: Assembly) -> None:
    reading = [
        statement
        for policy in assembly.of("S3::BucketPolicy")
        for statement in policy.properties["PolicyDocument"]["Statement"]
        if statement["Effect"] == "Allow" and "s3:GetObject" in listed(statement["Action"])
    ]
    (only,) = reading
    assert only["Principal"] == {"Service": "cloudfront.amazonaws.com"}
    (source,) = only["Condition"]["StringEquals"].values()
    assert assembly.only("CloudFront::Distribution").id in set(texts_of(source))


def test_the_console_is_published_with_every_deployment_its_pages_after_what_they_ask_for(assembly: Assembly) -> None:
    (bucket,) = (one for one in assembly.of("S3::Bucket") if "Console" in one.id)
    published = {"DestinationBucketKeyPrefix" in one.properties: one for one in assembly.of_custom(PUBLISHED)}
    files, pages = published[True].properties, published[False].properties
    assert files["SystemMetadata"] == {"cache-control": "public, max-age=31536000, immutable"}
    assert (files["DestinationBucketKeyPrefix"], files["Prune"]) == ("assets", False)
    assert pages["SystemMetadata"] == {"cache-control": "no-cache"}
    assert (pages["Prune"], pages["Exclude"], pages["DistributionPaths"]) == (True, ["assets/*"], ["/*"])
    assert pages["DistributionId"] == {"Ref": assembly.only("CloudFront::Distribution").id}
    assert published[True].id in listed(published[False].whole["DependsOn"])
    for one in (files, pages):
        assert one["DestinationBucketName"] == {"Ref": bucket.id}
        assert one["ServiceToken"] == _arn(_publisher(assembly))
    assert bucket.whole["DeletionPolicy"] == "Retain"


def _publisher(assembly: Assembly) -> Resource:
    return assembly.named("Lambda::Function", "FunctionName")[PUBLISHER]


def test_what_publishes_may_write_to_that_bucket_and_tell_its_front(assembly: Assembly) -> None:
    publisher = _publisher(assembly).properties
    assert publisher["KmsKeyArn"] == _key(assembly)
    assert publisher["LoggingConfig"]["LogFormat"] == "JSON"
    (role,) = (one for one in assembly.of("IAM::Role") if _arn(one) == publisher["Role"])
    actions = {action for statement in statements_of(role) for action in listed(statement["Action"])}
    assert actions == {
        *LOG,
        *("s3:GetObject", "s3:ListBucket", "s3:PutObject", "s3:DeleteObject"),
        *("cloudfront:CreateInvalidation", "cloudfront:GetInvalidation"),
    }
    (bucket,) = (one for one in assembly.of("S3::Bucket") if "Console" in one.id)
    for statement in statements_of(role):
        if "s3:PutObject" in listed(statement["Action"]):
            assert bucket.id in set(texts_of(statement["Resource"]))
    assert "AWS::IAM::Policy" not in {
        one.kind for one in assembly.resources if role.id in set(texts_of(one.properties))
    }


def test_the_console_is_told_where_people_sign_in_and_only_there_may_it_fetch_tokens(assembly: Assembly) -> None:
    (told,) = (
        one["SourceMarkers"]
        for one in (each.properties for each in assembly.of_custom(PUBLISHED))
        if "SourceMarkers" in one
    )
    url, client = told[1].values()
    assert assembly.only("Cognito::UserPoolClient").id in set(texts_of(client))
    origin = "".join(map(_plain, url["Fn::Join"][1])).strip('"')
    assert origin == "https://sweephand-AWS::AccountId.auth.AWS::Region.amazoncognito.com"
    policy = assembly.only("CloudFront::ResponseHeadersPolicy").properties["ResponseHeadersPolicyConfig"]
    security = policy["SecurityHeadersConfig"]
    assert security["ContentSecurityPolicy"]["Override"] is False  # the API has a stricter one
    said = "".join(map(_plain, security["ContentSecurityPolicy"]["ContentSecurityPolicy"]["Fn::Join"][1]))
    assert said == POLICY.replace("connect-src 'self'", f"connect-src 'self' {origin}")
    assert security["StrictTransportSecurity"]["AccessControlMaxAgeSec"] >= 31_536_000
    assert security["FrameOptions"]["FrameOption"] == "DENY"
    assert security["ReferrerPolicy"]["ReferrerPolicy"] == "no-referrer"
    others = {one["Header"]: one["Value"] for one in policy["CustomHeadersConfig"]["Items"]}
    assert others == {
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
        "permissions-policy": PERMISSIONS,
    }


def _plain(part: Any) -> str:
    return part if isinstance(part, str) else str(part["Ref"])


def test_people_sign_in_by_a_code_at_exact_addresses_and_by_nothing_else(assembly: Assembly) -> None:
    client = assembly.only("Cognito::UserPoolClient").properties
    assert client["AllowedOAuthFlows"] == ["code"]
    assert client["GenerateSecret"] is False
    assert client["ExplicitAuthFlows"] == ["ALLOW_REFRESH_TOKEN_AUTH"]
    domain = {"Fn::GetAtt": [assembly.only("CloudFront::Distribution").id, "DomainName"]}
    here = [{"Fn::Join": ["", ["https://", domain, "/"]]}]
    assert client["CallbackURLs"] == client["LogoutURLs"] == here
    assert client["EnableTokenRevocation"] is True
    assert client["PreventUserExistenceErrors"] == "ENABLED"


@pytest.mark.parametrize(
    ("path", "served"),
    [
        *[(path, "/index.html") for path in ("/", "/jobs", "/jobs/a.b/runs/20261115T060000Z.1", "/x.js", "/assets")],
        *[(path, path) for path in ("/index.html", "/favicon.svg", "/config.json", "/assets/index-0123abcd.js")],
    ],
)
def test_every_path_that_is_no_file_of_the_console_is_its_document(
    assembly: Assembly, tmp_path: Path, path: str, served: str
) -> None:
    code = assembly.only("CloudFront::Function").properties["FunctionCode"]
    script = tmp_path / "pages.js"
    script.write_text(f"{code}\nconsole.log(handler({{request: {{uri: {json.dumps(path)}}}}}).uri)")
    done = subprocess.run([str(NODE), str(script)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == served


def test_without_a_built_console_nothing_is_synthesized_and_it_says_why(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    done = synthesized(tmp_path / "out", site=tmp_path / "empty")
    assert done.returncode != 0
    assert "the console was not built. Run `make console` first." in done.stdout + done.stderr


def test_there_are_containers_to_start_and_none_that_runs(assembly: Assembly) -> None:
    definition = assembly.only("ECS::TaskDefinition").properties
    (agent,) = definition["ContainerDefinitions"]
    assert definition["RuntimePlatform"]["CpuArchitecture"] == "ARM64"
    assert agent["ReadonlyRootFilesystem"] is True
    assert agent["LogConfiguration"]["LogDriver"] == "awslogs"
    assert not [one for one in assembly.resources if one.kind == "AWS::ECS::Service"]


def test_what_is_launched_may_only_read_code_and_write_what_is_left_of_it(assembly: Assembly) -> None:
    definition = assembly.only("ECS::TaskDefinition").properties
    roles = {role.id: role for role in assembly.of("IAM::Role")}
    own = roles[definition["TaskRoleArn"]["Fn::GetAtt"][0]]
    (policy,) = own.properties["Policies"]
    logs, written, code, key = policy["PolicyDocument"]["Statement"]
    assert listed(logs["Action"]) == list(LOG)
    for statement, action, prefix in ((written, "s3:PutObject", "/attempts/*"), (code, "s3:GetObject", "/code/*")):
        assert statement["Action"] == action
        assert prefix in set(texts_of(statement["Resource"]))
    assert set(key["Action"]) == {"kms:GenerateDataKey", "kms:Decrypt"}
    assert any("s3." in text for text in texts_of(key["Condition"]["StringEquals"]["kms:ViaService"]))


def test_only_the_roles_of_agents_are_passed_and_only_to_ecs(assembly: Assembly) -> None:
    definition = assembly.only("ECS::TaskDefinition").properties
    passing = [
        statement
        for role in assembly.of("IAM::Role")
        for policy in role.properties.get("Policies", ())
        for statement in policy["PolicyDocument"]["Statement"]
        if "iam:PassRole" in listed(statement.get("Action", []))
    ]
    (only,) = passing
    assert sorted(map(str, only["Resource"])) == sorted(
        str(definition[role]) for role in ("TaskRoleArn", "ExecutionRoleArn")
    )
    assert only["Condition"] == {"StringEquals": {"iam:PassedToService": "ecs-tasks.amazonaws.com"}}


def test_the_end_of_a_task_is_told_to_the_function_that_watches(assembly: Assembly) -> None:
    rule = assembly.named("Events::Rule", "Name")[NAMES.of("watch")].properties
    assert "EventBusName" not in rule
    assert rule["EventPattern"]["detail"] == {
        "lastStatus": ["STOPPED"],
        "clusterArn": [{"Fn::GetAtt": [assembly.only("ECS::Cluster").id, "Arn"]}],
    }
    (target,) = rule["Targets"]
    assert target["DeadLetterConfig"] == {"Arn": _undelivered(assembly)}


def test_changes_of_job_files_are_told_to_the_function_that_scans(assembly: Assembly) -> None:
    rule = assembly.named("Events::Rule", "Name")[NAMES.of("scan")].properties
    (bucket,) = [one for one in assembly.of("S3::Bucket") if "Artifacts" in one.id]
    assert rule["EventPattern"]["detail"] == {
        "object": {"key": [{"prefix": "jobs/"}]},
        "bucket": {"name": [{"Ref": bucket.id}]},
    }
    assert bucket.properties["NotificationConfiguration"] == {"EventBridgeConfiguration": {"EventBridgeEnabled": True}}
    (target,) = rule["Targets"]
    assert target["DeadLetterConfig"] == {"Arn": _undelivered(assembly)}


def test_events_that_are_listed_are_told_to_the_function_that_occurs(tmp_path: Path) -> None:
    rules = [{"bucket": "inbox", "namespace": "team"}, {"pattern": {"source": ["shop"]}, "bus": "own"}]
    done = synthesized(tmp_path, {"eventRules": json.dumps(rules)})
    assert done.returncode == 0, done.stdout + done.stderr
    assembly = Assembly(tmp_path)
    function = assembly.named("Lambda::Function", "FunctionName")[NAMES.of("occur")]
    assert function.properties["DeadLetterConfig"] == {"TargetArn": _undelivered(assembly)}
    found = assembly.named("Events::Rule", "Name")
    made, other = (found[f"{NAMES.of('occur')}-{number}"].properties for number in (0, 1))
    assert ("EventBusName" in made, other["EventBusName"]) == (False, "own")
    assert made["EventPattern"]["detail"] == {"bucket": {"name": ["inbox"]}}
    for rule, namespace in ((made, "team"), (other, "default")):
        (target,) = rule["Targets"]
        assert target["Arn"] == _arn(function)
        assert target["DeadLetterConfig"] == {"Arn": _undelivered(assembly)}
        template = target["InputTransformer"]["InputTemplate"]
        assert template == f'{{"namespace": "{namespace}", "event": <aws.events.event.json>}}'
    allowed = [
        one.properties["SourceArn"]
        for one in assembly.of("Lambda::Permission")
        if one.properties["Principal"] == "events.amazonaws.com" and one.properties["FunctionName"] == _arn(function)
    ]
    assert len(allowed) == 2
    policies = json.dumps([one.properties for one in assembly.of("SQS::QueuePolicy")])
    assert f"rule/{NAMES.of('occur')}-*" in policies
    assert f"rule/*/{NAMES.of('occur')}-*" in policies


def test_containers_reach_out_and_nobody_reaches_them(assembly: Assembly) -> None:
    group = assembly.only("EC2::SecurityGroup").properties
    assert "SecurityGroupIngress" not in group
    assert [(rule["FromPort"], rule["ToPort"]) for rule in group["SecurityGroupEgress"]] == [(443, 443)]


def test_the_bus_is_encrypted_and_what_it_cannot_deliver_is_put_aside(assembly: Assembly) -> None:
    bus = assembly.only("Events::EventBus").properties
    assert bus["KmsKeyIdentifier"] == _key(assembly)
    assert bus["DeadLetterConfig"] == {"Arn": _undelivered(assembly)}
