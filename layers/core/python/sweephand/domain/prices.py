"""What AWS charges for what an estimate counts, in dollars, in us-east-1; each with where it was read and when.

None of them was checked against a bill. "Secondary" is somebody else's page than the seller's, and "general knowledge"
is nobody's: both are to be checked again before a decision rests on them. What only the benchmarks need is in
`bench/prices.py`, which takes these from here.
"""

from __future__ import annotations

from typing import Final

MILLION: Final = 1_000_000

# DynamoDB, on demand, since 2024-11-01. Secondary: airbyte 2025-07, jusdb (pages that still say 1.25 / 0.25 are old).
DYNAMODB_WRITE_UNIT: Final = 0.625 / MILLION
DYNAMODB_READ_UNIT: Final = 0.125 / MILLION

# SQS, by requests of up to 64 KB each, with a MessageGroupId on a standard queue: 0.10 more than without. Secondary:
# cloudburn 2026-03, factualminds 2026-06.
SQS_FAIR_REQUEST: Final = 0.50 / MILLION

# Lambda on arm64. Official for the model, secondary (cloudchipr and others) for the figures.
LAMBDA_REQUEST: Final = 0.20 / MILLION
LAMBDA_GB_SECOND: Final = 0.0000133334

# Fargate on arm64, on demand, by the second and for a minute at least. General knowledge.
FARGATE_CPU_SECOND: Final = 0.03238 / 3_600
FARGATE_GB_SECOND: Final = 0.00356 / 3_600

# Step Functions. Official (an old page), and secondary: wring 2026-03.
STEP_FUNCTIONS_TRANSITION: Final = 25.0 / MILLION
