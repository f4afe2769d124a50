"""Alarms, what they cost, and what an idle month costs with them."""

from __future__ import annotations

import json
import re
from typing import Any

from bench import costs
from sweephand.topology import FUNCTIONS, QUEUES, UNDELIVERED, Every, Listed, Messages, Names
from tests.infra.assembly import ROOT, Assembly, listed

NAMES = Names()
COSTS_WHILE_IDLE = (
    "EC2::NatGateway",
    "EC2::VPCEndpoint",
    "EC2::EIP",
    "ECS::Service",
    "WAFv2::WebACL",
    "SecretsManager::Secret",
    "Kinesis::Stream",
)


def _alarms(assembly: Assembly) -> dict[str, dict[str, Any]]:
    found = assembly.named("CloudWatch::Alarm", "AlarmName")
    return {name.removeprefix("sweephand-"): dict(alarm.properties) for name, alarm in found.items()}


def _metrics(alarm: dict[str, Any]) -> list[dict[str, Any]]:
    if "Metrics" not in alarm:
        return [alarm]
    return [one["MetricStat"]["Metric"] for one in alarm["Metrics"] if "MetricStat" in one]


def _watched(assembly: Assembly, dimension: str) -> set[str]:
    """The logical ids of what is alarmed by this dimension."""
    return {
        listed(one["Value"].get("Fn::GetAtt", one["Value"].get("Ref")))[0]
        for alarm in _alarms(assembly).values()
        for metric in _metrics(alarm)
        for one in metric.get("Dimensions", [])
        if one["Name"] == dimension and isinstance(one["Value"], dict)
    }


def test_every_alarm_tells_the_topic_and_says_what_it_means(assembly: Assembly) -> None:
    topic = {"Ref": assembly.only("SNS::Topic").id}
    for name, alarm in _alarms(assembly).items():
        assert alarm["AlarmActions"] == alarm["OKActions"] == [topic], name
        assert alarm["AlarmDescription"].endswith(f"See docs/operating.md, {name}."), name


def test_every_alarm_has_its_run_book(assembly: Assembly) -> None:
    books = re.findall(r"^### (?:Alarm )?`([\w-]+)`", (ROOT / "docs" / "operating.md").read_text(), re.MULTILINE)
    assert sorted(books) == sorted(_alarms(assembly))


def test_three_minutes_without_a_tick_are_an_alarm_even_if_nothing_is_heard(assembly: Assembly) -> None:
    alarm = _alarms(assembly)["no-tick"]
    assert (alarm["MetricName"], alarm["Period"], alarm["EvaluationPeriods"]) == ("Invocations", 60, 3)
    assert (alarm["ComparisonOperator"], alarm["Threshold"]) == ("LessThanThreshold", 1)
    assert alarm["TreatMissingData"] == "breaching"


def test_a_sweep_that_is_late_or_silent_is_an_alarm(assembly: Assembly) -> None:
    alarm = _alarms(assembly)["sweep-lag"]
    assert (alarm["Namespace"], alarm["MetricName"]) == ("Sweephand", "SweepLag")
    assert alarm["Dimensions"] == [{"Name": "Deployment", "Value": "sweephand"}]
    assert alarm["TreatMissingData"] == "breaching"


def test_one_hole_in_the_ledger_is_an_alarm(assembly: Assembly) -> None:
    alarm = _alarms(assembly)["ledger-hole"]
    assert (alarm["Namespace"], alarm["MetricName"], alarm["Threshold"]) == ("Sweephand", "LedgerHoles", 0)


def test_every_dead_letter_queue_and_the_one_of_the_undelivered_are_alarmed(assembly: Assembly) -> None:
    queues = assembly.named("SQS::Queue", "QueueName")
    expected = {queues[NAMES.queue(name)].id for name in (*(queue.dead for queue in QUEUES), UNDELIVERED)}
    assert expected <= _watched(assembly, "QueueName")


def test_the_oldest_message_of_every_lane_of_runs_is_alarmed(assembly: Assembly) -> None:
    assert {name for name in _alarms(assembly) if name.startswith("oldest-message-")} == {
        f"oldest-message-{queue.name}" for queue in QUEUES if queue.name != "sweep"
    }


def test_every_function_has_an_alarm_or_a_dead_letter_queue_behind_it(assembly: Assembly) -> None:
    functions = assembly.named("Lambda::Function", "FunctionName")
    answering = {"api", "authorize"}  # their failures are the API's own, which are alarmed
    called = {"execute", "call"}  # their failures are outcomes, which `attempt` and the machine store
    advancing = {
        "advance",
        "settle",
        "backfill",
    }  # their machine tries again, and is put aside where that does not help
    behind = {
        source.properties["FunctionName"]["Fn::GetAtt"][0]
        for source in assembly.of("Lambda::EventSourceMapping")
        if "DestinationConfig" in source.properties
    }
    assert "api-errors" in _alarms(assembly)
    assert "machine-execute" in _alarms(assembly)
    for function in FUNCTIONS:
        found = functions[NAMES.function(function)]
        queues = any(isinstance(trigger, Messages) for trigger in function.triggers)
        scheduled = any(isinstance(trigger, Every | Listed) for trigger in function.triggers)
        covered = queues or found.id in behind or (scheduled and "DeadLetterConfig" in found.properties)
        assert covered or function.name in answering | called | advancing, function.name


def test_every_machine_is_alarmed_or_its_failures_are_put_aside_where_an_alarm_is(assembly: Assembly) -> None:
    machines = {machine.id for machine in assembly.of("StepFunctions::StateMachine")}
    (rule,) = [
        one.properties
        for one in assembly.of("Events::Rule")
        if one.properties["EventPattern"]["source"] == ["aws.states"]
    ]
    assert rule["EventPattern"]["detail"]["status"] == ["FAILED", "TIMED_OUT"]
    told = rule["EventPattern"]["detail"]["stateMachineArn"]
    assert machines == _watched(assembly, "StateMachineArn") | {one["Ref"] for one in told}
    undelivered = assembly.named("SQS::Queue", "QueueName")[NAMES.queue(UNDELIVERED)]
    assert [undelivered.id in json.dumps(target["Arn"]) for target in rule["Targets"]] == [True]
    (policy,) = [
        one for one in assembly.of("SQS::QueuePolicy") if undelivered.id in json.dumps(one.properties["Queues"])
    ]
    sources = [
        json.dumps(statement["Condition"]["ArnEquals"]["aws:SourceArn"])
        for statement in policy.properties["PolicyDocument"]["Statement"]
        if statement["Principal"] == {"Service": "events.amazonaws.com"}
    ]
    assert f"rule/{rule['Name']}" in sources[0]


def test_throttles_of_functions_and_of_the_busiest_table_are_alarmed(assembly: Assembly) -> None:
    alarms = _alarms(assembly)
    assert (alarms["throttled-functions"]["MetricName"], alarms["throttled-functions"].get("Dimensions")) == (
        "Throttles",
        None,
    )
    assert alarms["throttled-writes"]["MetricName"] == "WriteThrottleEvents"


def test_the_topic_is_encrypted_and_takes_nothing_but_tls(assembly: Assembly) -> None:
    key = assembly.only("KMS::Key").id
    assert assembly.only("SNS::Topic").properties["KmsMasterKeyId"] == {"Fn::GetAtt": [key, "Arn"]}
    policy = assembly.only("SNS::TopicPolicy").properties["PolicyDocument"]["Statement"]
    assert [one for one in policy if one["Effect"] == "Deny" and "aws:SecureTransport" in str(one["Condition"])]


def test_alarms_and_the_budget_may_publish_and_nobody_else(assembly: Assembly) -> None:
    statements = assembly.only("SNS::TopicPolicy").properties["PolicyDocument"]["Statement"]
    allowed = [one for one in statements if one["Effect"] == "Allow"]
    assert {service for one in allowed for service in listed(one["Principal"]["Service"])} == {
        "cloudwatch.amazonaws.com",
        "budgets.amazonaws.com",
    }
    assert {action for one in allowed for action in listed(one["Action"])} == {"sns:Publish"}


def test_the_budget_counts_what_carries_the_tag_of_the_deployment(assembly: Assembly) -> None:
    budget = assembly.only("Budgets::Budget").properties
    assert budget["Budget"]["BudgetLimit"] == {"Amount": 25, "Unit": "USD"}
    assert budget["Budget"]["CostFilters"] == {"TagKeyValue": ["user:Deployment$sweephand"]}
    tagged = {"Key": "Deployment", "Value": "sweephand"}
    for kind in ("Lambda::Function", "SQS::Queue", "KMS::Key"):
        assert all(tagged in one.properties["Tags"] for one in assembly.of(kind))


def test_an_idle_month_pays_for_what_the_costs_page_counts(assembly: Assembly) -> None:
    """One key, one dashboard, and as many metrics in alarms: `docs/costs.md` sums them up, with all the rest."""
    assert len(assembly.of("KMS::Key")) == len(assembly.of("CloudWatch::Dashboard")) == 1
    assert sum(len(_metrics(alarm)) for alarm in _alarms(assembly).values()) == costs.ALARM_METRICS


def test_nothing_that_costs_while_it_idles_was_added(assembly: Assembly) -> None:
    kinds = {resource.kind.removeprefix("AWS::") for resource in assembly.resources}
    assert not kinds & set(COSTS_WHILE_IDLE)
