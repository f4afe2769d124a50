"""The app becomes templates, without an account and without Docker, and every checker is content with them."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from infra.node import command, environment
from infra.options import Options, option_of
from infra.reviewed import REVIEWED
from tests.infra.assembly import ROOT, Assembly, listed, synthesized, texts_of
from tests.infra.test_data import expiring

_PARAMETERS = "arn:aws:ssm:us-east-1:111111111111:parameter/jobs/{namespace}/*"
_SECRETS = "arn:aws:secretsmanager:us-east-1:111111111111:secret:jobs-*"
_KEY = "arn:aws:kms:us-east-1:111111111111:key/0c0c0c0c"
TARGETS = (
    "arn:aws:lambda:eu-west-1:123456789012:function:load-*",
    "arn:aws:sqs:*:123456789012:orders",
    "arn:aws:states:eu-west-1:123456789012:stateMachine:bake",
    "arn:aws:kms:eu-west-1:123456789012:key/0c0c0c0c-0c0c-0c0c-0c0c-0c0c0c0c0c0c",
)
ECR = "123456789012.dkr.ecr.eu-west-1.amazonaws.com"
JOBS = "arn:aws:glue:eu-west-1:123456789012:job/*"
OTHERWISE = {
    "name": {"name": "night-shift"},
    "keep_runs_days": {"keepRunsDays": "400"},
    "log_retention_days": {"logRetentionDays": "365"},
    "shards": {"shards": "64"},
    "lookahead_minutes": {"lookaheadMinutes": "12"},
    "peak_runs_per_second": {"peakRunsPerSecond": "4000"},
    "execute_concurrency": {"executeConcurrency": "50"},
    "batch_seconds": {"batchSeconds": "2"},
    "domain_name": {
        "domainName": "jobs.example.org",
        "certificateArn": "arn:aws:acm:us-east-1:111111111111:certificate/0c0c0c0c",
    },
    "vpc_id": {"vpcId": "vpc-0a1b2c3d", "subnetIds": "subnet-0a1b2c3d,subnet-1a1b2c3d"},
    "keep_jobs": {"keepJobs": "true"},
    "event_rules": {
        "eventRules": '[{"bucket": "inbox", "namespace": "team"}, {"pattern": {"source": ["shop"]}, "bus": "own"}]'
    },
    "alarm_email": {"alarmEmail": "oncall@example.org"},
    "monthly_budget_usd": {"monthlyBudgetUsd": "0"},
    "waf": {"waf": "true"},
    "agent_image": {"agentImage": "example/agent:1"},
    "container_images": {"containerImages": f"{ECR}/team/*,{ECR}/one:1,registry.example.org/team/*"},
    "x86_containers": {"x86Containers": "true"},
    "http_may_reach": {"httpMayReach": "10.1.0.0/16, billing.internal:8443"},
    "secret_arns": {"secretArns": f"{_PARAMETERS},{_SECRETS},{_KEY}"},
    "targets": {"targets": ",".join(TARGETS)},
    "sdk_actions": {"sdkActions": "glue:StartJobRun,logs:StartQuery"},
    "sdk_resources": {"sdkActions": "glue:StartJobRun", "sdkResources": JOBS},
}
"""Every option with another value than its default, alone or with the one it needs."""


def _pulled(assembly: Assembly) -> list[str]:
    """What ECS may fetch of repositories that the option names."""
    return sorted(
        "".join(part for part in resource["Fn::Join"][1] if isinstance(part, str)).partition("eu-west-1:")[2]
        for role in assembly.of("IAM::Role")
        for policy in role.properties.get("Policies", ())
        for statement in policy["PolicyDocument"]["Statement"]
        if "ecr:BatchGetImage" in listed(statement.get("Action", []))
        for resource in listed(statement["Resource"])
    )


def _kinds(assembly: Assembly) -> set[str]:
    return {resource.kind for resource in assembly.resources}


REACH = "SWEEPHAND_HTTP_MAY_REACH"
IMAGES = "SWEEPHAND_CONTAINER_IMAGES"


def _told(assembly: Assembly) -> dict[str, dict[str, str]]:
    """What each function knows of the deployment."""
    return {
        name.removeprefix("sweephand-"): one.properties.get("Environment", {}).get("Variables", {})
        for name, one in assembly.named("Lambda::Function", "FunctionName").items()
    }


def _says(assembly: Assembly, variable: str, value: str) -> bool:
    """Whether all functions are told so but `execute`, which knows of nothing that it does not need."""
    told = _told(assembly)
    return variable not in told.pop("execute") and {variables.get(variable) for variables in told.values()} == {value}


def _warm(assembly: Assembly) -> dict[str, Any]:
    tables = assembly.named("DynamoDB::GlobalTable", "TableName").items()
    return {name: table.properties["WarmThroughput"] for name, table in tables if "WarmThroughput" in table.properties}


def _references(assembly: Assembly) -> dict[str, list[tuple[str, str]]]:
    """Which roles read what of others."""
    found = {}
    for role in assembly.of("IAM::Role"):
        for policy in role.properties.get("Policies", ()):
            if policy["PolicyName"] == "References":
                rules = policy["PolicyDocument"]["Statement"]
                found[role.id] = sorted((rule["Action"], rule["Resource"]) for rule in rules)
    return found


def _allowed(assembly: Assembly, policy: str) -> dict[str, Any]:
    """What a policy of the role of `call` allows: actions, and to what."""
    (role,) = (one for one in assembly.of("IAM::Role") if one.id.startswith("FunctionsCallRole"))
    (found,) = (one for one in role.properties["Policies"] if one["PolicyName"] == policy)
    return {
        str(action): statement["Resource"]
        for statement in found["PolicyDocument"]["Statement"]
        for action in listed(statement["Action"])
    }


EFFECTS: dict[str, Callable[[Assembly], bool]] = {
    "keep_jobs": lambda made: (
        made.named("Lambda::Function", "FunctionName")["sweephand-scan"].properties["Environment"]["Variables"][
            "SWEEPHAND_KEEP_JOBS"
        ]
        == "yes"
    ),
    "event_rules": lambda made: {"sweephand-occur-0", "sweephand-occur-1"} <= made.named("Events::Rule", "Name").keys(),
    "name": lambda made: all(name.startswith("night-shift-") for name in made.named("SQS::Queue", "QueueName")),
    "keep_runs_days": lambda made: (
        _says(made, "SWEEPHAND_KEEP_RUNS_DAYS", "400") and expiring(made, "Artifacts") == [("attempts/", 400)]
    ),
    "log_retention_days": lambda made: {g.properties["RetentionInDays"] for g in made.of("Logs::LogGroup")} == {365},
    "shards": lambda made: _says(made, "SWEEPHAND_SHARDS", "64"),
    "lookahead_minutes": lambda made: _says(made, "SWEEPHAND_LOOKAHEAD_MINUTES", "12"),
    "peak_runs_per_second": lambda made: (
        _warm(made)
        == {
            "sweephand-runs": {"ReadUnitsPerSecond": 16_000, "WriteUnitsPerSecond": 12_000},
            "sweephand-jobs": {"ReadUnitsPerSecond": 16_000, "WriteUnitsPerSecond": 4_000},
        }
    ),
    "execute_concurrency": lambda made: (
        [
            (one.properties["FunctionName"], one.properties["ReservedConcurrentExecutions"])
            for one in made.of("Lambda::Function")
            if "ReservedConcurrentExecutions" in one.properties
        ]
        == [("sweephand-execute", 50)]
    ),
    "batch_seconds": lambda made: (
        sorted(
            one.properties["MaximumBatchingWindowInSeconds"]
            for one in made.of("Lambda::EventSourceMapping")
            if "ScalingConfig" in one.properties
        )
        == [0, 0, 2, 2]
        and _told(made)["attempt"]["SWEEPHAND_BATCH_SECONDS"] == "2"
    ),
    "domain_name": lambda made: (
        made.only("CloudFront::Distribution").properties["DistributionConfig"]["ViewerCertificate"][
            "MinimumProtocolVersion"
        ]
        == "TLSv1.2_2021"
        and made.only("CloudFront::Distribution").properties["DistributionConfig"]["Aliases"] == ["jobs.example.org"]
    ),
    "vpc_id": lambda made: (
        "AWS::EC2::VPC" not in _kinds(made) and made.only("EC2::SecurityGroup").properties["VpcId"] == "vpc-0a1b2c3d"
    ),
    "alarm_email": lambda made: made.only("SNS::Subscription").properties["Endpoint"] == "oncall@example.org",
    "monthly_budget_usd": lambda made: "AWS::Budgets::Budget" not in _kinds(made),
    "waf": lambda made: {"AWS::WAFv2::WebACL", "AWS::WAFv2::WebACLAssociation"} <= _kinds(made),
    "agent_image": lambda made: (
        made.only("ECS::TaskDefinition").properties["ContainerDefinitions"][0]["Image"] == "example/agent:1"
    ),
    "container_images": lambda made: (
        {name: told[IMAGES] for name, told in _told(made).items() if IMAGES in told}
        == dict.fromkeys(("attempt", "scan", "api"), f"{ECR}/team/* {ECR}/one:1 registry.example.org/team/*")
        and _pulled(made) == ["123456789012:repository/one", "123456789012:repository/team/*"]
    ),
    "x86_containers": lambda made: (
        {name for name, told in _told(made).items() if "SWEEPHAND_AGENT_IMAGE_X86" in told}
        == {"attempt", "scan", "api"}
    ),
    "http_may_reach": lambda made: (
        {name: told[REACH] for name, told in _told(made).items() if REACH in told}
        == dict.fromkeys(("api", "scan", "execute"), "10.1.0.0/16,billing.internal:8443")
        and _told(made)["execute"].keys() == {"SWEEPHAND_NAME", "SWEEPHAND_ARTIFACTS", REACH}
    ),
    "secret_arns": lambda made: (
        [*_references(made).values()]
        == 2
        * [
            [
                ("kms:Decrypt", _KEY),
                ("secretsmanager:GetSecretValue", _SECRETS),
                ("ssm:GetParameter", _PARAMETERS.replace("{namespace}", "*")),
            ]
        ]
    ),
    "targets": lambda made: (
        _allowed(made, "Targets")
        == {
            "lambda:InvokeFunction": TARGETS[0],
            "sqs:SendMessage": TARGETS[1],
            "states:StartExecution": TARGETS[2],
            "states:DescribeExecution": "arn:aws:states:eu-west-1:123456789012:execution:bake:*",
            "states:StopExecution": "arn:aws:states:eu-west-1:123456789012:execution:bake:*",
            "kms:Decrypt": TARGETS[3],
            "kms:GenerateDataKey": TARGETS[3],
        }
    ),
    "sdk_actions": lambda made: _allowed(made, "Sdk") == {"glue:StartJobRun": "*", "logs:StartQuery": "*"},
    "sdk_resources": lambda made: _allowed(made, "Sdk") == {"glue:StartJobRun": JOBS},
}
"""What shows that the option was heard."""


def _lint(assembly: Assembly) -> subprocess.CompletedProcess[str]:
    templates = [str(path) for path in sorted(assembly.folder.glob("*.template.json"))]
    return subprocess.run(
        [str(Path(sys.executable).with_name("cfn-lint")), "--ignore-checks", "W3005", "--", *templates],
        capture_output=True,
        text=True,
        check=False,
    )


def _report(assembly: Assembly) -> list[dict[str, object]]:
    reports: list[dict[str, object]] = json.loads((assembly.folder / "validation-report.json").read_text())[
        "pluginReports"
    ]
    return reports


def test_there_are_two_stacks_and_the_one_with_the_data_cannot_be_deleted_by_mistake(assembly: Assembly) -> None:
    artifacts = json.loads((assembly.folder / "manifest.json").read_text())["artifacts"]
    protected = {
        name: artifact["properties"].get("terminationProtection", False)
        for name, artifact in artifacts.items()
        if artifact["type"] == "aws:cloudformation:stack"
    }
    assert protected == {"SweephandData": True, "SweephandApp": False}


def test_cfn_lint_finds_nothing(assembly: Assembly) -> None:
    done = _lint(assembly)
    assert done.returncode == 0, done.stdout + done.stderr


def test_no_rule_of_cdk_nag_is_broken_unless_it_was_reviewed(assembly: Assembly) -> None:
    reports = _report(assembly)
    assert "AwsSolutions" in {report["pluginName"] for report in reports}
    assert [report["violations"] for report in reports] == [[] for _ in reports]


def test_every_review_has_a_reason_and_is_still_needed(assembly: Assembly) -> None:
    suppressed = [one for report in _report(assembly) for one in report["suppressedViolations"]]  # type: ignore[attr-defined]
    used = {(one["acknowledgedAt"], one["acknowledgedId"], one["reason"]) for one in suppressed}
    written = {
        (f"Sweephand{path}", f"AwsSolutions::AwsSolutions-{_with_names(rule)}", why) for path, rule, why in REVIEWED
    }
    assert used == written
    assert all(len(reason) > 20 for _, _, reason in written)


def _with_names(rule: str) -> str:
    return rule.replace("{title}", "Sweephand").replace("{name}", "sweephand")


def _check_machine(path: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command("asl-validator", "--json-path", str(path)),
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("path", sorted((ROOT / "statemachines").glob("*.asl.json")), ids=lambda path: path.stem)
def test_every_state_machine_is_well_formed(path: Path, tmp_path: Path) -> None:
    text = re.sub(r"\$\{\w+\}", "arn:aws:lambda:eu-west-1:111111111111:function:some", path.read_text())
    whole, dangling = tmp_path / "whole.json", tmp_path / "dangling.json"
    whole.write_text(text)
    dangling.write_text(re.sub(r'("Next": )"\w+"', r'\1"Nowhere"', text))
    done = _check_machine(whole)
    assert done.returncode == 0, done.stdout + done.stderr
    assert _check_machine(dangling).returncode != 0


def test_no_template_knows_an_account_a_region_or_a_machine(assembly: Assembly) -> None:
    texts = set(texts_of(assembly.templates))
    assert not [text for text in texts if str(ROOT) in text or re.search(r"\b\d{12}\b", text)]
    regions = re.compile(r"\b(us|eu|ap|sa|ca|me|af)-(east|west|north|south|central)\w*-\d\b")
    assert not [text for text in texts if regions.search(text)]


def _files(assembly: Assembly, layer: str) -> set[str]:
    """What is in a layer, however CDK has put it there."""
    (one,) = (one for one in assembly.of("Lambda::LayerVersion") if one.properties.get("LayerName", "").endswith(layer))
    asset = assembly.folder / one.whole["Metadata"]["aws:asset:path"]
    if asset.is_file():
        return set(ZipFile(asset).namelist())
    return {path.relative_to(asset).as_posix() for path in asset.rglob("*") if path.is_file()}


def test_the_core_layer_holds_our_code_without_what_only_runs_on_peoples_machines(assembly: Assembly) -> None:
    files = _files(assembly, "core")
    parts = {path.split("/")[2] for path in files}
    assert {"aws", "engine", "domain", "api", "entrypoint.py", "topology.py"} <= parts
    assert not parts & {"cli", "client", "local", "testing"}
    assert not [path for path in files if "__pycache__" in path]


def test_the_vendor_layer_holds_what_the_functions_import_built_for_their_platform(assembly: Assembly) -> None:
    files = _files(assembly, "vendor")
    packages = {path.split("/")[1] for path in files}
    assert {"aws_lambda_powertools", "croniter", "jwt", "pydantic", "tzdata"} <= packages
    assert not packages & {"boto3", "botocore"}
    native = [path for path in files if path.endswith(".so")]
    assert native
    assert not [path for path in native if "x86_64" in path]


@pytest.mark.soak
@pytest.mark.parametrize("field", OTHERWISE)
def test_every_option_does_what_it_says_in_templates_that_pass_every_check(field: str, tmp_path: Path) -> None:
    done = synthesized(tmp_path / "out", OTHERWISE[field])
    assert done.returncode == 0, done.stdout + done.stderr
    assembly = Assembly(tmp_path / "out")
    linted = _lint(assembly)
    assert linted.returncode == 0, linted.stdout
    assert EFFECTS[field](assembly)


def test_infra_knows_nothing_of_the_package_but_its_topology_and_its_settings() -> None:
    known = {
        name
        for path in (ROOT / "infra").glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in ([node.module or ""] if isinstance(node, ast.ImportFrom) else [one.name for one in node.names])
        if name.split(".")[0] == "sweephand"
    }
    assert known == {"sweephand.topology", "sweephand.settings"}


def test_every_option_is_tried_with_another_value() -> None:
    assert EFFECTS.keys() == OTHERWISE.keys()
    given = {key for context in OTHERWISE.values() for key in context}
    assert given == {option_of(field) for field in Options.__dataclass_fields__}


def test_a_wrong_option_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    done = synthesized(tmp_path / "out", {"shard": "16"})
    assert done.returncode != 0
    assert "Option shard: there is no such option" in done.stderr + done.stdout
