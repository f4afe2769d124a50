"""What AWS and others charge, in dollars; AWS in us-east-1. Each in one place, with where it was read and when:
what an estimate of the product needs too, in `sweephand/domain/prices.py`, and all else here.

None of them was checked against a bill. "Official" is the seller's own page; "secondary" is somebody else's, and
"general knowledge" is nobody's: both are to be checked again before a decision rests on them.
"""

from __future__ import annotations

from math import ceil
from typing import Final

from sweephand.domain import prices as ours

MILLION: Final = ours.MILLION
DYNAMODB_WRITE_UNIT: Final = ours.DYNAMODB_WRITE_UNIT
DYNAMODB_READ_UNIT: Final = ours.DYNAMODB_READ_UNIT
SQS_FAIR_REQUEST: Final = ours.SQS_FAIR_REQUEST
LAMBDA_REQUEST: Final = ours.LAMBDA_REQUEST
LAMBDA_GB_SECOND: Final = ours.LAMBDA_GB_SECOND
STEP_FUNCTIONS_TRANSITION: Final = ours.STEP_FUNCTIONS_TRANSITION

# DynamoDB's storage. Secondary, as its units. Point-in-time recovery, by the size of the table: general knowledge.
DYNAMODB_GB_MONTH: Final = 0.25
DYNAMODB_RECOVERY_GB_MONTH: Final = 0.20

# SQS, by requests of up to 64 KB each. Secondary: cloudburn 2026-03, factualminds 2026-06.
SQS_REQUEST: Final = 0.40 / MILLION

# Step Functions Express, charged by 64 MB and 100 ms. Official (an old page), and secondary: wring 2026-03.
STEP_FUNCTIONS_EXPRESS_REQUEST: Final = 1.00 / MILLION
STEP_FUNCTIONS_EXPRESS_GB_SECOND: Final = 0.00001667

# EventBridge Scheduler. Secondary: cloudburn 2026-03.
EVENTBRIDGE_SCHEDULER_INVOCATION: Final = 1.00 / MILLION

# CloudWatch. Secondary: signoz 2026-02, factualminds 2026-06; the alarm, which is charged for each metric in it, and
# the storage of logs from general knowledge.
CLOUDWATCH_LOGS_GB: Final = 0.50
CLOUDWATCH_LOGS_GB_MONTH: Final = 0.03
CLOUDWATCH_METRIC_MONTH: Final = 0.30  # every value of a dimension is a metric
CLOUDWATCH_DASHBOARD_MONTH: Final = 3.00
CLOUDWATCH_ALARM_METRIC_MONTH: Final = 0.10

# Firehose, put directly. Official (read 2026-08) that a record is charged by the started 5 KB; the figure from general
# knowledge.
FIREHOSE_GB: Final = 0.029

# S3 standard, ECR and KMS: general knowledge. A key that rotates is a dollar dearer from its second year on, and
# another from its third.
S3_GB_MONTH: Final = 0.023
S3_PUT: Final = 5.00 / MILLION
ECR_GB_MONTH: Final = 0.10
KMS_KEY_MONTH: Final = 1.00
KMS_REQUEST: Final = 0.03 / 10_000

# What is free every month and does not end with an account's first year: general knowledge, except Scheduler
# (secondary: cloudburn 2026-03). A dashboard is free up to so many metrics.
FREE_SQS_REQUESTS: Final = 1 * MILLION
FREE_LAMBDA_REQUESTS: Final = 1 * MILLION
FREE_LAMBDA_GB_SECONDS: Final = 400_000
FREE_SCHEDULER_INVOCATIONS: Final = 14 * MILLION
FREE_ALARM_METRICS: Final = 10
FREE_CUSTOM_METRICS: Final = 10
FREE_DASHBOARDS: Final = 3
FREE_DASHBOARD_METRICS: Final = 50
FREE_LOGS_GB: Final = 5
FREE_KMS_REQUESTS: Final = 20_000

# MWAA. Secondary: classmethod 2025-11 (Tokyo's list, whose rates by the hour are the same); another page (c3x.dev)
# has dearer ones. Tasks at once in one worker: official.
HOURS_A_MONTH: Final = 730
MWAA_HOUR: Final = {"small": 0.49, "large": 0.99}
MWAA_WORKER_HOUR: Final = {"small": 0.055, "large": 0.22}
MWAA_WORKER_TASKS: Final = {"small": 5, "large": 20}

# Temporal Cloud, Essentials, pay as you go. Official: docs.temporal.io/cloud/pricing, read 2026-08. The plan contains
# a million actions and costs 5 % of what is used, at least 100. Beyond the last tier they ask to be asked.
TEMPORAL_TIERS: Final = ((5, 50.0), (5, 45.0), (10, 40.0), (30, 35.0), (50, 30.0), (100, 25.0))
"""Millions of actions, and dollars for each of them."""
TEMPORAL_INCLUDED: Final = 1
TEMPORAL_PLAN_MONTH: Final = 100.0
TEMPORAL_PLAN_SHARE: Final = 0.05


def mwaa_month(size: str, *, tasks: float = 0) -> float:
    """An environment, which has one worker, with as many more as that many tasks at once need."""
    more = max(1, ceil(tasks / MWAA_WORKER_TASKS[size])) - 1
    return (MWAA_HOUR[size] + more * MWAA_WORKER_HOUR[size]) * HOURS_A_MONTH


def temporal_month(millions: float) -> float:
    """So many million actions, tier by tier, and the plan."""
    left, used = max(0, millions - TEMPORAL_INCLUDED), 0.0
    for size, price in TEMPORAL_TIERS:
        used += min(left, size) * price
        left -= min(left, size)
    if left:
        raise ValueError(f"There is no published price for {millions} million actions.")
    return used + max(TEMPORAL_PLAN_MONTH, TEMPORAL_PLAN_SHARE * used)
