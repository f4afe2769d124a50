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

MESSAGE_DELAY_MAX: Final = timedelta(minutes=15)
"""The longest that a queue delays a message."""
