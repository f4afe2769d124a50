"""What AWS charges in us-east-1, in dollars; one place, each with where it was read and when.

None of them was checked against a bill. "Official" is AWS's own page; "secondary" is somebody else's, to be checked
again before a figure that rests on it is published.
"""

from __future__ import annotations

from typing import Final

MILLION: Final = 1_000_000

# DynamoDB, on demand, since 2024-11-01. Secondary: airbyte 2025-07, jusdb (pages that still say 1.25 / 0.25 are old).
DYNAMODB_WRITE_UNIT: Final = 0.625 / MILLION
DYNAMODB_READ_UNIT: Final = 0.125 / MILLION
DYNAMODB_GB_MONTH: Final = 0.25

# SQS, by requests of up to 64 KB each. Secondary: cloudburn 2026-03, factualminds 2026-06.
SQS_REQUEST: Final = 0.40 / MILLION
SQS_FAIR_REQUEST: Final = 0.50 / MILLION  # with a MessageGroupId on a standard queue: 0.10 more

# Lambda on arm64. Official for the model, secondary (cloudchipr and others) for the figures.
LAMBDA_REQUEST: Final = 0.20 / MILLION
LAMBDA_GB_SECOND: Final = 0.0000133334

# Step Functions. Official (an old page), and secondary: wring 2026-03.
STEP_FUNCTIONS_TRANSITION: Final = 25.0 / MILLION
STEP_FUNCTIONS_EXPRESS_REQUEST: Final = 1.00 / MILLION
STEP_FUNCTIONS_EXPRESS_GB_SECOND: Final = 0.00001667

# EventBridge. Secondary: cloudburn 2026-03. Scheduler: the first 14 million a month are free.
EVENTBRIDGE_EVENT: Final = 1.00 / MILLION
EVENTBRIDGE_SCHEDULER_INVOCATION: Final = 1.00 / MILLION

# API Gateway. Secondary: go-cloud 2026; WebSocket connection minutes from general knowledge.
API_GATEWAY_HTTP_REQUEST: Final = 1.00 / MILLION
API_GATEWAY_WEBSOCKET_MESSAGE: Final = 1.00 / MILLION
API_GATEWAY_WEBSOCKET_MINUTE: Final = 0.25 / MILLION

# CloudWatch. Secondary: signoz 2026-02, factualminds; the alarm from general knowledge.
CLOUDWATCH_LOGS_GB: Final = 0.50
CLOUDWATCH_METRIC_MONTH: Final = 0.30  # every value of a dimension is a metric
CLOUDWATCH_DASHBOARD_MONTH: Final = 3.00
CLOUDWATCH_ALARM_MONTH: Final = 0.10

# Fargate on ARM, at least a minute. Secondary: vantage, factualminds 2026-06.
FARGATE_VCPU_HOUR: Final = 0.03238
FARGATE_GB_HOUR: Final = 0.00356
