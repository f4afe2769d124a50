"""Templates of jobs: parts of a definition with parameters, which jobs that are made of them give.

`${with.region}` in a template stands for what a job says under `with`; it is filled in when the job is saved, so that
everything else of a definition can be a parameter: a schedule, a time-out, a list of tasks. A text that is nothing else
takes the value as it is; inside other text a value becomes text. `$${with.region}` is left as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from typing import Any, Final

from msgspec import Struct

from sweephand.domain.definition import STEP_FIELDS, TEMPLATE_FIELDS
from sweephand.domain.fields import Fields, anything, choice, listed, mapped, nearest, object_of, refusal, shown, text
from sweephand.domain.templates import as_text
from sweephand.errors import InvalidInput

__all__ = [
    "PARAMETERS",
    "WITH",
    "Kind",
    "Parameter",
    "check_template",
    "filled",
    "is_left_open",
    "read_parameters",
    "samples_of",
]

PARAMETERS: Final = "parameters"
WITH: Final = "with"
PARAMETERS_MAX: Final = 50
ENUM_MAX: Final = 100
WITH_BYTES_MAX: Final = 32_768
PARAMETER_NAME: Final = r"[A-Za-z][A-Za-z0-9_-]{0,63}"

_NAMED: Final = re.compile(r"(?<!\$)\$\{with(?:\.([^{}]*))?\}")


class Kind(StrEnum):
    """What a parameter's value is."""

    STRING = "string"
    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    LIST = "list"
    OBJECT = "object"


_TYPES: Final[Mapping[Kind, tuple[type, ...]]] = {
    Kind.STRING: (str,),
    Kind.INTEGER: (int,),
    Kind.NUMBER: (int, float),
    Kind.BOOLEAN: (bool,),
    Kind.LIST: (list,),
    Kind.OBJECT: (dict,),
}
_SAMPLES: Final[Mapping[Kind, Any]] = {
    Kind.STRING: "x",
    Kind.INTEGER: 1,
    Kind.NUMBER: 1,
    Kind.BOOLEAN: True,
    Kind.LIST: [],
    Kind.OBJECT: {},
}


class Parameter(Struct, frozen=True):
    """What a template asks a job for; without a default, the job must say it."""

    kind: Kind = Kind.STRING
    default: Any = None
    has_default: bool = False
    options: tuple[Any, ...] = ()
    """The only values that are right, where there are any."""

    def check(self, value: Any, path: str) -> Any:
        """The value, if it is one of this parameter's."""
        is_flag = isinstance(value, bool) and self.kind is not Kind.BOOLEAN  # which Python takes for a number
        if is_flag or not isinstance(value, _TYPES[self.kind]):
            article = "an" if self.kind[0] in "aeiou" else "a"
            raise InvalidInput(f"{shown(value)} is not {article} {self.kind}.", path)
        if self.options and not any(value == one and type(value) is type(one) for one in self.options):
            raise InvalidInput(f"{shown(value)} is unknown: use {', '.join(map(as_text, self.options))}.", path)
        return value

    @property
    def sample(self) -> Any:
        """Some value that is right."""
        if self.has_default:
            return self.default
        return self.options[0] if self.options else _SAMPLES[self.kind]


def read_parameters(value: Any, path: str = PARAMETERS) -> dict[str, Parameter]:
    """The parameters that a template declares."""
    return _PARAMETERS(value, path) if value is not None else {}


def _parameter(value: Any, path: str) -> Parameter:
    fields = Fields(value, path)
    parameter = Parameter(
        kind=fields.get("type", _KIND, Kind.STRING),
        default=fields.get("default", anything, None),
        has_default=bool(fields.given("default")),
        options=fields.get("enum", _OPTIONS, ()),
    )
    fields.get("description", _DESCRIPTION, "")
    fields.done()
    bare = Parameter(parameter.kind)
    for n, one in enumerate(parameter.options):
        bare.check(one, f"{path}.enum[{n}]")
    if parameter.has_default:
        parameter.check(parameter.default, f"{path}.default")
    return parameter


_KIND: Final = choice(Kind)
_OPTIONS: Final = listed(anything, ENUM_MAX, least=1)
_DESCRIPTION: Final = text(1_024, least=0)
_PARAMETERS: Final = mapped(
    text(
        64, pattern=PARAMETER_NAME, right="a parameter's name begins with a letter, and has letters, digits, '_', '-'"
    ),
    _parameter,
    PARAMETERS_MAX,
)
_GIVEN: Final = object_of(WITH_BYTES_MAX)


def filled(document: Mapping[str, Any], given: Any, *, template: str) -> dict[str, Any]:
    """A template's fields with the values that a job gives, or all that is wrong with those, each by its path."""
    parameters = read_parameters(document.get(PARAMETERS))
    values = _values(parameters, given, template)
    return {
        field: _replaced(value, field, values, parameters) for field, value in document.items() if field != PARAMETERS
    }


def _values(parameters: Mapping[str, Parameter], given: Any, template: str) -> dict[str, Any]:
    said = _GIVEN(given, WITH) if given is not None else {}
    errors = [
        (f"{WITH}.{name[:64]}", f"The template '{template}' has no parameter '{name[:64]}'{nearest(name, parameters)}")
        for name in said
        if name not in parameters
    ]
    values = {}
    for name, parameter in parameters.items():
        try:
            values[name] = _value(parameter, name, said.get(name), template)
        except InvalidInput as refused:
            errors += refused.errors
    if errors:
        raise refusal(errors)
    return values


def _value(parameter: Parameter, name: str, said: Any, template: str) -> Any:
    if said is not None:
        return parameter.check(said, f"{WITH}.{name}")
    if not parameter.has_default:
        raise InvalidInput(
            f"The template '{template}' needs '{name}', a value of type {parameter.kind}.", f"{WITH}.{name}"
        )
    return parameter.default


def _replaced(value: Any, path: str, values: Mapping[str, Any], known: Mapping[str, Parameter]) -> Any:
    """A copy with every parameter replaced; names of fields are left as they are."""

    def fill(written: str, at: str) -> Any:
        whole = _NAMED.fullmatch(written)
        if whole is not None:
            return values[_declared(whole[1], at, known)]
        return _NAMED.sub(lambda found: as_text(values[_declared(found[1], at, known)]), written)

    return _each_text(value, path, fill)


def _declared(name: str | None, path: str, known: Mapping[str, Parameter]) -> str:
    if name not in known:
        hint = nearest(name or "", known) if known else ": declare it under 'parameters'."
        raise InvalidInput(f"The template declares no parameter '{(name or '')[:64]}'{hint}", path)
    return name or ""


def _each_text(value: Any, path: str, change: Callable[[str, str], Any]) -> Any:
    if isinstance(value, str):
        return change(value, path)
    if isinstance(value, Mapping):
        return {name: _each_text(item, f"{path}.{name}", change) for name, item in value.items()}
    if isinstance(value, list):
        return [_each_text(item, f"{path}[{n}]", change) for n, item in enumerate(value)]
    return value


# Judging a template before any job is made of it.


def samples_of(document: Mapping[str, Any]) -> dict[str, Any]:
    """A value for each parameter with which the template can be tried."""
    return {name: one.sample for name, one in read_parameters(document.get(PARAMETERS)).items()}


def check_template(document: Mapping[str, Any], read: Callable[[dict[str, Any]], object]) -> None:
    """Refuse what would be refused in every job of this template: `read` reads a definition, and refuses it.

    A template is part of a definition: fields of one, except the name, which is the job's own. What depends on a job's
    own values is judged with that job.
    """
    known = (*TEMPLATE_FIELDS, PARAMETERS)
    wrong = next((field for field in document if field not in known), None)
    if wrong is not None:
        raise InvalidInput(f"There is no field '{wrong[:64]}' in a template{nearest(wrong, known)}", wrong[:64])
    job = {"name": "a-job-of-this-template", **filled(document, samples_of(document), template="this one")}
    if all(document.get(field) is None for field in STEP_FIELDS):
        job["command"] = ["true"]
    try:
        read(job)
    except InvalidInput as refused:
        errors = [(path, message) for path, message in refused.errors if not is_left_open(document, path)]
        if errors:
            raise refusal(errors) from None


def is_left_open(document: Mapping[str, Any], path: str) -> bool:
    """Whether what is at a path, in it or around it, depends on a value that only a job gives."""
    return any(_touch(path, at) for at in _open_paths(document))


def _touch(one: str, other: str) -> bool:
    shorter, longer = sorted((one, other), key=len)
    return longer == shorter or longer.startswith((f"{shorter}.", f"{shorter}["))


def _open_paths(document: Mapping[str, Any]) -> Iterator[str]:
    wanted = {name for name, one in read_parameters(document.get(PARAMETERS)).items() if not one.has_default}
    found: list[str] = []

    def look(written: str, at: str) -> str:
        found.extend(at for name in _NAMED.findall(written) if name in wanted)
        return written

    for field, value in document.items():
        if field != PARAMETERS:
            _each_text(value, field, look)
    return iter(found)
