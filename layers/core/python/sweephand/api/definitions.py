"""The JSON Schema of what `domain` reads itself: definitions, templates, calendars.

Limits are the domain's own, and where it takes null for an absent field, so does the schema. What JSON Schema cannot
say is left to formats of ours (`cron`, `timezone`, `command-line`, `period`, `condition`, `list-template`) and to
descriptions.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import timedelta
from typing import Any, Final

from sweephand.api.steps import COMMAND, step
from sweephand.api.vocabulary import (
    DATE,
    FLAG,
    INSTANT,
    NAME,
    NOTHING,
    TIMEZONE,
    WHOLE_SECOND,
    Schema,
    all_optional,
    anything,
    choice,
    closed,
    listed,
    mapped,
    only,
    optional,
    period,
    ref,
    text,
    whole,
    without,
)
from sweephand.domain.calendars import DATES_MAX, WEEKDAYS
from sweephand.domain.definition import (
    DESCRIPTION_CHARS_MAX,
    FAILURES_MAX,
    NOTICES_MAX,
    PARAMS_BYTES_MAX,
    STEP_FIELDS,
)
from sweephand.domain.expression import TEXT_MAX
from sweephand.domain.job import A_MOMENT, CatchupPolicy, Guarantee, OnFailure, Overlap, Priority, TriggerRule
from sweephand.domain.job_templates import ENUM_MAX, PARAMETER_NAME, PARAMETERS_MAX, WITH_BYTES_MAX, Kind
from sweephand.domain.kinds import NOTHING_INSTALLED, Installed
from sweephand.domain.limits import (
    CATCHUP_MAX,
    CONDITION_CHARS_MAX,
    HOLDERS_MAX,
    MAPPED_MAX,
    MAPPED_USUAL_MAX,
    TASKS_MAX,
)
from sweephand.domain.occasions import (
    DATASETS_MAX,
    DEPENDENCIES_MAX,
    EVENTS_MAX,
    MATCH_BYTES_MAX,
    NEEDS_MAX,
    NEEDS_TIMEOUT_MAX,
    NeedsWindow,
    Quantity,
    Window,
)
from sweephand.domain.retry import Backoff
from sweephand.domain.schedule import BLACKOUTS_MAX, JITTER_MAX, PERIOD_MAX, Fold, Gap, HoldPolicy
from sweephand.domain.task_definition import (
    ATTEMPTS_MAX,
    CACHE_KEY_CHARS_MAX,
    CACHE_TTL_MAX,
    DELAY_MAX,
    GROUP,
    OVER_CHARS_MAX,
    TAGS_MAX,
)

_A_SECOND: Final = timedelta(seconds=1)

# When it runs.

_CRON: Final = text(
    TEXT_MAX,
    format="cron",
    description="5 fields, or 6 with seconds first; @daily; cron(…) and rate(…) as EventBridge.",
)
_JOB_NAMES: Final = listed(NAME, DEPENDENCIES_MAX, least=1, distinct=True)


def _each_quantity(names: Schema, **others: Schema) -> list[Schema]:
    """Objects with names under `all` or under `any`, and these other fields."""
    absent = {str(one): NOTHING for one in Quantity}
    return [closed({**absent, **others, str(one): names}, required=[str(one)]) for one in Quantity]


_AFTER: Final[Schema] = {
    "anyOf": [
        ref("JobNames"),
        *_each_quantity(ref("JobNames"), window=optional(choice(Window)), timezone=NOTHING),
        *(
            {**one, "required": [*one["required"], "window"]}
            for one in _each_quantity(
                ref("JobNames"), window={"enum": [str(Window.SAME_DAY)]}, timezone=optional(TIMEZONE)
            )
        ),
    ],
    "description": "A list means the last success of all of them; the days of sameDay are the schedule's, or UTC.",
}
_NEEDED_NAMES: Final = listed(NAME, NEEDS_MAX, least=1, distinct=True)
_NEEDS_TIMEOUT: Final = period(_A_SECOND, NEEDS_TIMEOUT_MAX)
_NEEDS: Final[Schema] = {
    "anyOf": [
        _NEEDED_NAMES,
        closed(
            {
                "jobs": _NEEDED_NAMES,
                "window": optional({"enum": [str(NeedsWindow.LATEST_BEFORE)]}),
                "timeout": optional(_NEEDS_TIMEOUT),
                "timezone": NOTHING,
            },
            required=["jobs"],
        ),
        closed(
            {
                "jobs": _NEEDED_NAMES,
                "window": {"enum": [str(NeedsWindow.SAME_DAY)]},
                "timeout": optional(_NEEDS_TIMEOUT),
                "timezone": optional(TIMEZONE),
            },
            required=["jobs", "window"],
        ),
    ],
    "description": "Jobs that the schedule's own fires wait for, each of which has a schedule unless the window is "
    "sameDay. A list means their last fires; timeout is a day where it is not given.",
}
_DATASET_NAMES: Final = listed(NAME, DATASETS_MAX, least=1, distinct=True)
_DATASETS: Final[Schema] = {
    "anyOf": [_DATASET_NAMES, *_each_quantity(_DATASET_NAMES)],
    "description": "A list means all of them, each updated since the last run.",
}
_EVENTS: Final = listed(
    closed(
        {"source": text(256), "type": optional(text(256)), "match": optional(anything(MATCH_BYTES_MAX))},
        required=["source"],
    ),
    EVENTS_MAX,
    least=1,
)
_BLACKOUT: Final = closed(
    {"from": INSTANT, "to": INSTANT, "policy": optional(choice(HoldPolicy))},
    required=["from", "to"],
    description="It ends after it begins.",
)
_CLOCK_FIELDS: Final = all_optional(
    {
        "timezone": TIMEZONE,
        "dst": closed(all_optional({"gap": choice(Gap), "fold": choice(Fold)})),
        "startAt": INSTANT,
        "endAt": INSTANT,
        "jitter": period(most=JITTER_MAX),
        "calendar": NAME,
        "blackouts": ref("Blackouts"),
    }
)
_OCCASION_SHAPES: Final = {"after": "After", "datasets": "Datasets", "events": "EventRules"}
_OCCASIONS: Final = all_optional({field: ref(shape) for field, shape in _OCCASION_SHAPES.items()})
_NO_RECURRENCE: Final = dict.fromkeys(("cron", "every", "at"), NOTHING)


def _scheduled_by(field: str, shape: Schema, **others: Schema) -> Schema:
    """A schedule of one kind: its field, none of the other kinds', and what all have in common."""
    fields = {**_NO_RECURRENCE, **_CLOCK_FIELDS, **_OCCASIONS, "needs": optional(ref("Needs")), **others}
    return closed({**fields, field: shape}, required=[field])


SCHEDULE: Final[Schema] = {
    "anyOf": [
        _CRON,
        _scheduled_by("cron", _CRON),
        _scheduled_by("every", period(_A_SECOND, PERIOD_MAX, kind="integer"), startAt=optional(WHOLE_SECOND)),
        _scheduled_by("at", WHOLE_SECOND),
        {
            **closed({**_NO_RECURRENCE, **_CLOCK_FIELDS, **_OCCASIONS, "needs": NOTHING}),
            "anyOf": [only(field, ref(shape), ()) for field, shape in _OCCASION_SHAPES.items()],
        },
    ],
    "description": "A bare text is cron in UTC. endAt is later than startAt, and the calendar must exist.",
}

# What happens to its runs.

_CATCHUP: Final[Schema] = {
    "anyOf": [
        choice(CatchupPolicy),
        closed(
            all_optional({"policy": choice(CatchupPolicy), "max": whole(1, CATCHUP_MAX), "window": period(_A_SECOND)})
        ),
    ]
}
_CONCURRENCY: Final = closed(
    all_optional({"runs": whole(1, HOLDERS_MAX), "pool": NAME, "slots": whole(1, HOLDERS_MAX)}),
    description="The pool must exist.",
)
_DELAY: Final = period(most=DELAY_MAX)
_FAILURE_NAMES: Final = listed(text(256), 50, distinct=True)
_DELAYS: Final = listed(_DELAY, ATTEMPTS_MAX, least=1)
_RETRY_FIELDS: Final = all_optional(
    {
        "attempts": whole(1, ATTEMPTS_MAX),
        "delay": _DELAY,
        "maxDelay": _DELAY,
        "on": _FAILURE_NAMES,
        "never": _FAILURE_NAMES,
    }
)
_FORMULAS: Final = {"type": "string", "enum": [str(one) for one in Backoff if one is not Backoff.LIST]}
RETRY: Final[Schema] = {
    "anyOf": [
        closed({**_RETRY_FIELDS, "backoff": optional(_FORMULAS), "delays": NOTHING}),
        closed(
            {**_RETRY_FIELDS, "backoff": {"enum": [str(Backoff.LIST), None]}, "delays": _DELAYS}, required=["delays"]
        ),
    ],
    "description": "maxDelay is not shorter than delay, which is 10 seconds where it is not given.",
}
_RETRIES: Final = whole(0, ATTEMPTS_MAX - 1)
_ONE_RETRY: Final = {"anyOf": [without("retry"), without("retries")]}
_NOTICES: Final = listed(
    closed(
        {
            "on": listed(
                {
                    "enum": [
                        "started",
                        "succeeded",
                        "failed",
                        "retrying",
                        "cancelled",
                        "skipped",
                        "paused",
                        "deadlineMissed",
                    ]
                },
                10,
                least=1,
                distinct=True,
            ),
            "to": text(2_048, least=3, pattern=r"^[a-z][a-z0-9+.-]*:[^\x00-\x20\x7f]+$"),
        },
        required=["on", "to"],
    ),
    NOTICES_MAX,
)
_DEADLINE: Final = {"type": "string", "pattern": "^([01][0-9]|2[0-3]):[0-5][0-9]$"}
_TAGS: Final = listed(text(128), TAGS_MAX, distinct=True)

# What it runs.

_MAP: Final = closed(
    {
        "over": {"anyOf": [text(OVER_CHARS_MAX, format="list-template"), listed({}, MAPPED_MAX)]},
        "max": optional(whole(1, MAPPED_MAX)),
    },
    required=["over"],
    description=f"A list is not longer than max, which is {MAPPED_USUAL_MAX} where it is not given.",
)
_CACHE: Final = closed(
    {"key": text(CACHE_KEY_CHARS_MAX), "ttl": period(_A_SECOND, CACHE_TTL_MAX)}, required=["key", "ttl"]
)
TASK: Final[Schema] = closed(
    {
        "id": NAME,
        **all_optional(
            {
                "run": ref("Step"),
                "command": COMMAND,
                "needs": listed(NAME, TASKS_MAX, distinct=True),
                "retry": ref("Retry"),
                "retries": _RETRIES,
                "timeout": period(A_MOMENT),
                "cache": _CACHE,
                "when": choice(TriggerRule),
                "if": text(CONDITION_CHARS_MAX, format="condition"),
                "map": _MAP,
                "branch": FLAG,
                "pool": NAME,
                "slots": whole(1, HOLDERS_MAX),
                "group": text(128, pattern=f"^{GROUP}$"),
                "priority": choice(Priority),
                "labels": listed(NAME, TAGS_MAX, distinct=True),
                "publishes": _DATASET_NAMES,
            }
        ),
    },
    required=["id"],
    description="It needs tasks of the same job, and nothing that needs it; slots go with a pool, neither branch nor "
    "publishes with map.",
    allOf=[
        {"anyOf": [only("run", ref("Step"), ["command"]), only("command", COMMAND, ["run"])]},
        _ONE_RETRY,
    ],
)
_TASKS: Final = listed(ref("Task"), TASKS_MAX, least=1)
_STEP_SHAPES: Final[Mapping[str, Schema]] = {"tasks": _TASKS, "run": ref("Step"), "command": COMMAND}

FIELDS: Final[Mapping[str, Schema]] = all_optional(
    {
        "description": text(DESCRIPTION_CHARS_MAX, least=0),
        "schedule": ref("Schedule"),
        "dependencies": ref("JobNames"),
        "catchup": _CATCHUP,
        "overlap": choice(Overlap),
        "startDeadline": period(_A_SECOND),
        "concurrency": _CONCURRENCY,
        "priority": choice(Priority),
        "guarantee": choice(Guarantee),
        "retry": ref("Retry"),
        "retries": _RETRIES,
        "timeout": period(A_MOMENT),
        "runTimeout": period(A_MOMENT),
        "onFailure": choice(OnFailure),
        "deadline": _DEADLINE,
        "pauseAfterFailures": whole(1, FAILURES_MAX),
        "cache": _CACHE,
        "publishes": _DATASET_NAMES,
        "notify": ref("Notices"),
        "params": anything(PARAMS_BYTES_MAX),
        "tags": _TAGS,
        **_STEP_SHAPES,
    }
)
"""What jobs and templates have in common."""

_AFTER_ONCE: Final = {
    "anyOf": [
        without("dependencies"),
        {"properties": {"schedule": {"anyOf": [{"type": ["string", "null"]}, without("after")]}}},
    ]
}
_AT_MOST_ONE_STEP: Final = {"anyOf": [without("run", "command"), without("tasks", "command"), without("tasks", "run")]}
_ONE_STEP: Final = {
    "anyOf": [
        *(only(field, shape, STEP_FIELDS) for field, shape in _STEP_SHAPES.items()),
        only("template", NAME, (*STEP_FIELDS, "template")),
    ]
}
_WITH: Final = {**anything(WITH_BYTES_MAX), "description": "Values of the template's parameters, by their names."}
_WITH_A_TEMPLATE: Final = {"anyOf": [without("with"), only("template", NAME, ())]}
_PARAMETERS: Final = mapped(
    f"^{PARAMETER_NAME}$",
    closed(
        all_optional(
            {
                "type": choice(Kind),
                "default": {},
                "enum": {"type": "array", "items": {}, "minItems": 1, "maxItems": ENUM_MAX},
                "description": text(1_024, least=0),
            }
        ),
        description="The default and every value of the enum are of the type; the default is one of the enum.",
    ),
    PARAMETERS_MAX,
)
_DEFINITION: Final = "A job, in the long or the short form. No text in it contains U+0000; see the limits in the docs."


def components(kinds: Collection[str], operators: Installed = NOTHING_INSTALLED) -> dict[str, Any]:
    """The named schemas, for a place that runs steps of these kinds, and of operators that are installed there."""
    fields = {**FIELDS, "template": optional(NAME), "with": optional(_WITH)}
    rules = [_ONE_STEP, _ONE_RETRY, _AFTER_ONCE, _WITH_A_TEMPLATE]
    return {
        "Step": step(kinds, operators),
        **{name: part for offer in operators.values() for name, part in offer.parts.items()},
        "Schedule": SCHEDULE,
        "JobNames": _JOB_NAMES,
        "After": _AFTER,
        "Needs": _NEEDS,
        "Datasets": _DATASETS,
        "EventRules": _EVENTS,
        "Blackouts": listed(_BLACKOUT, BLACKOUTS_MAX),
        "Notices": _NOTICES,
        "Retry": RETRY,
        "Task": TASK,
        "JobDefinition": closed({"name": NAME, **fields}, required=["name"], allOf=rules, description=_DEFINITION),
        "JobChange": closed(
            {"name": NAME, **fields}, allOf=rules, description=f"{_DEFINITION} A name is that of the path."
        ),
        "JobTemplate": closed(
            {**FIELDS, "parameters": optional(_PARAMETERS)},
            description="Where it has parameters, ${with.NAME} may stand for any value in it; what that must be shows "
            "when a job gives it.",
            allOf=[_AT_MOST_ONE_STEP, _ONE_RETRY, _AFTER_ONCE],
        ),
        "Calendar": closed(
            {
                "id": NAME,
                "timezone": TIMEZONE,
                "weekdays": {"type": "array", "items": {"enum": list(WEEKDAYS)}},
                "closed": listed(DATE, DATES_MAX),
                "opened": listed(DATE, DATES_MAX),
            },
            description=f"At most {DATES_MAX} dates, none of them both closed and opened; an id is that of the path.",
        ),
    }
