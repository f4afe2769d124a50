"""Jobs that have something to show, with whatever people may write in every text of theirs."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

Says = Callable[[str], str]
"""A plain text as somebody wrote it."""

_EXTRACT = """
printf '%s\\n' "reading the sales of $REGION" "$SAID"
echo >&2 'two rows have no price'
printf '%s' "$GIVES" > "$SWEEPHAND_OUTPUT"
printf '%s' "$SAID" > "$SWEEPHAND_ARTIFACTS/$FILE"
"""
_LOAD = """
echo 'loading 2 of 3 regions'
printf '%s\\n' "$SAID" >&2
exit "$EXIT"
"""


def sales(says: Says) -> dict[str, Any]:
    """Several tasks, some of them in a group, one for each region, and one that asks somebody."""
    extract = {
        "SAID": says("14,203 rows"),
        "GIVES": json.dumps({says("rows"): 14203, "source": says("warehouse")}),
        "FILE": says("sales.csv").replace("/", "|"),
        "REGION": "${params.region}",
    }
    load = {"SAID": says("no such table: sales_2026"), "EXIT": "${params.exit}"}
    tasks = [
        {"id": "extract", "run": {"command": ["sh", "-c", _EXTRACT], "env": extract}},
        {"id": "clean", "needs": ["extract"], "group": "prepare", "run": {"command": ["true"]}},
        {"id": "enrich", "needs": ["extract"], "group": "prepare", "run": {"command": ["true"]}},
        {
            "id": "rates",
            "needs": ["extract"],
            "map": {"over": "${params.regions}"},
            "run": {"command": ["echo", "${item}"]},
        },
        {"id": "load", "needs": ["clean", "enrich", "rates"], "run": {"command": ["sh", "-c", _LOAD], "env": load}},
        {"id": "publish", "needs": ["load"], "run": {"approval": {"message": says("Publish the figures?")}}},
        {"id": "report", "needs": ["publish"], "run": {"command": ["echo", "reported"]}},
    ]
    return {
        "name": "daily-sales",
        "description": says("Extracts, loads and reports the sales of a day."),
        "schedule": {"cron": "30 2 * * *", "timezone": "America/New_York"},
        "tags": [says("finance"), says("daily")],
        "params": {"region": "eu", "regions": ["eu", "us", says("ap")], "note": says("none"), "exit": 0},
        "retry": {"attempts": 2, "delay": "1s", "never": [says("InvalidInput")]},
        "tasks": tasks,
    }


def others(says: Says) -> list[dict[str, Any]]:
    """One of nearly every kind of schedule and step."""
    busy = 'echo 40 > "$SWEEPHAND_PROGRESS"; printf \'%s\\n\' "$SAID"; exec sleep 600'
    return [
        {
            "name": "hourly-check",
            "description": says("Looks whether the shop answers."),
            "schedule": "0 * * * *",
            "tags": ["shop"],
            "command": "true",
        },
        {
            "name": "nightly-cleanup",
            "description": says("Removes what nobody needs any more."),
            "schedule": {"cron": "0 3 * * *"},
            "command": "true",
            "tags": ["house"],
        },
        {
            "name": "import-orders",
            "description": says("Takes over the orders of the shop, in the order in which they came."),
            "schedule": {"every": "15m"},
            "concurrency": {"runs": 1},
            "overlap": "queue",
            "tags": ["shop", "orders"],
            "publishes": ["orders"],
            "run": {"command": ["sh", "-c", busy], "env": {"SAID": says("page 7 of 18")}},
        },
        {"name": "queue-depth", "schedule": "*/5 * * * *", "command": "echo 3", "tags": ["shop"]},
        {"name": "load-orders", "command": "true", "publishes": ["orders.loaded"], "tags": ["orders"]},
        {"name": "refresh-search", "schedule": {"datasets": ["orders.loaded"]}, "command": "true", "tags": ["shop"]},
        {
            "name": "welcome-mail",
            "schedule": {"events": [{"source": says("shop"), "type": says("customer.new")}]},
            "command": "true",
        },
        {"name": "fleet-sync", "description": says("Done by machines elsewhere."), "run": {"external": {}}},
        {"name": "load-eu", "template": "regional", "with": {"region": says("eu")}},
    ]


def template(says: Says) -> dict[str, Any]:
    return {
        "description": says("Loads one region."),
        "parameters": {"region": {"description": says("Where it runs."), "default": "eu"}},
        "command": ["echo", "${with.region}"],
        "tags": ["regions"],
    }


FILE = """
name: archive
description: Puts away what is older than a year.
schedule: "0 5 1 * *"
command: "true"
"""
"""A job file that is right."""
