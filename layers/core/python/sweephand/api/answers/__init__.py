"""The answers of calls, as the OpenAPI document describes them; `shapes` makes them."""

from __future__ import annotations

from functools import cache
from typing import Final

from pydantic import BaseModel

from sweephand.api.answers import jobs, people, runs, things, watching
from sweephand.api.answers.told import page_of
from sweephand.api.answers.watching import Problem

__all__ = ["Problem", "named"]

_ROOMS: Final = (jobs, runs, things, people, watching)


@cache
def named(name: str) -> type[BaseModel]:
    """The answer of this name; `JobPage` is a page of `Job`."""
    item = name.removesuffix("Page")
    model: type[BaseModel] = next(vars(room)[item] for room in _ROOMS if item in vars(room))
    return model if item == name else page_of(model)
