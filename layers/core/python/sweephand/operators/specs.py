"""The options of an installed operator: a struct that says what is right, when a task is saved and when it runs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import fields as fields_of

from sweephand.domain.fields import Fields
from sweephand.domain.kinds import Offer
from sweephand.domain.templates import check
from sweephand.errors import InvalidInput

__all__ = ["offer_of", "options_as"]

S = TypeVar("S", bound=Struct)

_TEMPLATE: Final[dict[str, Any]] = {"type": "string", "pattern": r"\$\{", "description": "A template."}
_PLACE: Final = re.compile(r" - at `\$(.*)`$", re.DOTALL)


def offer_of(kind: str, spec: Any) -> Offer:
    """How steps of an operator with this `Spec` are read, and the schema of that."""
    if not (isinstance(spec, type) and issubclass(spec, Struct)):
        raise InvalidInput("Its 'Spec' is no struct of msgspec: class Spec(msgspec.Struct).")
    prefix = f"operators.{kind}."
    (schema,), parts = msgspec.json.schema_components([spec], ref_template=f"#/components/schemas/{prefix}{{name}}")
    named = {f"{prefix}{name}": part for name, part in parts.items()}
    whole = named[schema["$ref"].rpartition("/")[2]]
    whole["properties"] = {name: _or_template(part) for name, part in whole.get("properties", {}).items()}
    whole["additionalProperties"] = False
    return Offer(partial(_read, spec), schema, named)


def options_as(spec: type[S], given: Mapping[str, Any]) -> S:
    """The options of a task whose templates are resolved, as its operator's struct; null is as good as absent."""
    options: S = _converted({name: value for name, value in given.items() if value is not None}, spec, "")
    return options


def _or_template(schema: dict[str, Any]) -> dict[str, Any]:
    options: list[dict[str, Any]] = [schema, _TEMPLATE, {"type": "null"}]
    return {"anyOf": options}


def _read(spec: type[Struct], value: Any, path: str) -> Any:
    """Refuse what the operator could not use. A field with a template in it is judged when the task runs."""
    check(value, path)
    fields, is_written_out = Fields(value, path), True
    for field in fields_of(spec):
        given = value.get(field.encode_name)
        is_templated = _has_template(given)
        is_written_out = is_written_out and not is_templated
        read = (lambda one, _at: one) if is_templated else partial(_as, field.type)
        fields.get(field.encode_name, read, None, required=field.required)
    fields.done()
    if is_written_out:
        _converted({name: one for name, one in value.items() if one is not None}, spec, path)
    return value


def _as(kind: Any, value: Any, path: str) -> Any:
    return _converted(value, kind, path)


def _converted(value: Any, kind: Any, path: str) -> Any:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        message = str(error)
        at = _PLACE.search(message)
        where = at[1] if at else ""
        what = _PLACE.sub("", message).replace("`", "").rstrip(".")
        raise InvalidInput(f"{what}.", f"{path}{where}" if path else where.lstrip(".")) from None


def _has_template(value: Any) -> bool:
    if isinstance(value, str):
        return "${" in value
    if isinstance(value, Mapping):
        return any(map(_has_template, value.values()))
    return isinstance(value, list) and any(map(_has_template, value))
