"""A limit on everything, in one place; the documents and the API quote these."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

CLOCK_SKEW_MAX: Final = timedelta(seconds=90)
"""How far any node's clock may be off; beyond it, precision suffers but nothing is lost or doubled."""

SIDES_BLUR: Final = 2 * CLOCK_SKEW_MAX
"""Two clocks apart in opposite directions: a change this close to a fire may fall on either side of it."""

OVERDUE_GRACE: Final = timedelta(seconds=90)
"""A fire found later than this was missed, and the catch-up policy decides about it."""

FIRES_PER_PASS_MAX: Final = 1_000
"""Fires that one planning pass of one job turns into runs; the rest follows in the next pass."""

LOST_MAX: Final = 4
"""Workers that a run may lose before it fails: a payload that kills every worker must end."""

REDRIVES_MAX: Final = 3
"""Times that a dead message of an open run is sent again before the run fails as poison."""

AUDITED_BACK: Final = timedelta(hours=24)
"""How far back the auditor looks for open runs; an older one is looked at by a due entry of its own every hour."""

WAITERS_MAX: Final = 20
"""Waiting runs that a slot remembers by name; the others find a free slot by their own timer."""

HOLDERS_MAX: Final = 500
"""Runs that one slot item can name; a larger pool would outgrow its item."""

CATCHUP_MAX: Final = 10_000
"""The most missed fires that a job may ask to make up for."""

OUTPUT_BYTES_MAX: Final = 4_096
"""The largest output that is kept in the run itself."""

OUTPUT_KEPT_MAX: Final = 1_048_576
"""The largest output of all: what is larger than the run can hold is kept in a file."""

MESSAGE_DELAY_MAX: Final = timedelta(minutes=15)
"""The longest that a queue delays a message."""

TASKS_MAX: Final = 10_000
"""Tasks of one job, however they need each other."""

MAPPED_MAX: Final = 10_000
"""The longest list that a task can be mapped over."""

MAPPED_USUAL_MAX: Final = 1_000
"""The longest list of a map that does not say its own `max`."""

RUN_INSTANCES_MAX: Final = 100_000
"""Instances of all mapped tasks of one run: ten thousand tasks, each mapped over ten thousand items, must not be."""

ITEM_BYTES_MAX: Final = 32_768
"""The largest item of a list that a task is mapped over: it is kept in the run of its instance, as params are."""

CONDITION_CHARS_MAX: Final = 1_024
"""The longest condition of a task."""

CONDITION_DEPTH_MAX: Final = 20
"""Parentheses and `not` within each other."""
