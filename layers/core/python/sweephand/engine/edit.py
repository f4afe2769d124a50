"""Change a small shared document, whoever else does at the same time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from sweephand.domain.ids import Namespace
from sweephand.errors import Unavailable
from sweephand.ports import World

Document = Mapping[str, Any]

_TRIES: Final = 8


def edit(
    world: World, namespace: Namespace, kind: str, name: str, change: Callable[[Document | None], Document | None]
) -> None:
    """Put what `change` makes of the document (None: there is none); where it answers None, nothing is to be changed.

    It may be asked more than once, since the document may move meanwhile. Repeating it is as safe as `change` is.
    """
    for _ in range(_TRIES):
        stored = world.shared.get(namespace, kind, name)
        after = change(stored[1] if stored else None)
        if after is None or world.shared.put(namespace, kind, name, after, expected=stored[0] if stored else 0):
            return
    raise Unavailable(f"The {kind} document {name} keeps changing: try again.")
