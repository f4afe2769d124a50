"""What every answer is, and a page of them."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class Told(BaseModel):
    """An answer."""

    model_config = ConfigDict(extra="allow", alias_generator=to_camel, populate_by_name=True, defer_build=True)


def page_of(item: type[BaseModel]) -> type[BaseModel]:
    """A page of a list of such answers."""
    annotations = {"items": list[item], "next_cursor": str | None}  # type: ignore[valid-type]
    return type(f"{item.__name__}Page", (Told,), {"__annotations__": annotations, "__module__": __name__})
