"""A lifecycle is one table of arrows; code, documents and tests all read it.

`python -m sweephand.domain.lifecycle` prints `docs/lifecycle.md`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Generic, TypeVar

from msgspec import Struct
from msgspec.structs import force_setattr

from sweephand.errors import IllegalTransition

S = TypeVar("S", bound=StrEnum)
E = TypeVar("E", bound=StrEnum)


class Lifecycle(Struct, Generic[S, E], frozen=True):
    """States, events, and the only arrows that there are; `stuck` says who rescues what stays in a state."""

    name: str
    states: type[S]
    events: type[E]
    arrows: Mapping[tuple[S, E], S]
    stuck: Mapping[S, str]

    def __post_init__(self) -> None:
        force_setattr(self, "arrows", MappingProxyType(dict(self.arrows)))

    @property
    def terminal(self) -> frozenset[S]:
        """The states that nothing leaves."""
        return frozenset(self.states) - {state for state, _ in self.arrows}

    def after(self, state: S, event: E, *, what: str) -> S:
        """The next state, or a refusal that names the thing."""
        target = self.arrows.get((state, event))
        if target is None:
            raise IllegalTransition(what, state, event)
        return target

    def allows(self, state: S, event: E) -> bool:
        """Whether the arrow exists."""
        return (state, event) in self.arrows

    def as_markdown(self) -> str:
        """The table as a page's section."""
        lines = [f"## {self.name}", "", "| from | event | to |", "|---|---|---|"]
        lines += [f"| {state} | {event} | {target} |" for (state, event), target in self.arrows.items()]
        lines += ["", "| state | what leaves a thing there, and who rescues it |", "|---|---|"]
        for state in self.states:
            story = "terminal: nothing leaves it" if state in self.terminal else self.stuck[state]
            lines.append(f"| {state} | {story} |")
        return "\n".join(lines)


def _page() -> str:
    from sweephand.domain.backfill import BACKFILL_LIFECYCLE
    from sweephand.domain.job import JOB_LIFECYCLE
    from sweephand.domain.run import RUN_LIFECYCLE
    from sweephand.domain.task import TASK_LIFECYCLE

    head = (
        "# Lifecycles\n\nGenerated from the tables in `sweephand/domain/` by `make docs`; "
        "a test fails when this page drifts.\n"
    )
    lifecycles = (JOB_LIFECYCLE, RUN_LIFECYCLE, TASK_LIFECYCLE, BACKFILL_LIFECYCLE)
    return "\n\n".join([head.rstrip(), *(one.as_markdown() for one in lifecycles)])


if __name__ == "__main__":
    print(_page())
