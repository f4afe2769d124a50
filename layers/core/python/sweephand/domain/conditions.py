"""Conditions of tasks: `${tasks.count.output.rows} > 0 and ${params.region} in ["eu", "us"]`. No code.

Values are those of JSON. Only what is of one kind is compared, and only true and false decide: a condition that
compares text with a number is a mistake that its task fails with.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final, NoReturn

from msgspec import Struct

from sweephand.domain.fields import shown
from sweephand.domain.limits import CONDITION_CHARS_MAX, CONDITION_DEPTH_MAX
from sweephand.domain.templates import SECRETS, Reference, look_up, pieces
from sweephand.errors import InvalidInput

__all__ = ["Condition", "holds", "is_about_items", "parse_condition"]

_TOKEN: Final = re.compile(
    r"""\s*(?:(?P<reference>\$\{[^}]*\}?)
    |(?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
    |(?P<number>-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)
    |(?P<word>[A-Za-z_][A-Za-z_0-9]*)
    |(?P<sign>==|!=|<=|>=|[<>()\[\],]))""",
    re.VERBOSE | re.ASCII,
)
_BLANK: Final = re.compile(r"\s*")
_ESCAPED: Final = re.compile(r"\\(.)")
_WORDS: Final[Mapping[str, Any]] = {"true": True, "false": False, "null": None}
_OPERATORS: Final = frozenset({"==", "!=", "<", "<=", ">", ">=", "in", "not in"})
_INTEGER_DIGITS_MAX: Final = 18


class Condition(Struct, frozen=True):
    """A condition that was read: how to evaluate it, and what it names."""

    evaluate: Callable[[Mapping[str, Any]], Any]
    references: tuple[Reference, ...]


def parse_condition(text: str, path: str) -> Condition:
    """The condition that a text means, or a refusal that points at the character."""
    if len(text) > CONDITION_CHARS_MAX:
        raise InvalidInput(f"The condition has {len(text)} characters: 1 to {CONDITION_CHARS_MAX} are right.", path)
    return _Reading(text, path).condition()


@lru_cache(maxsize=1_024)
def _read(text: str) -> Condition:
    return parse_condition(text, "if")


def holds(text: str, known: Mapping[str, Any]) -> bool:
    """Whether a condition is true of what is known, or a refusal that says why nobody can tell."""
    return _decided(_read(text).evaluate(known), text)


def is_about_items(text: str) -> bool:
    """Whether a condition names the item of a map, so that it is asked for each one."""
    return any(reference.names[0] in ("item", "index") for reference in _read(text).references)


# Reading.

_Evaluate = Callable[[Mapping[str, Any]], Any]


class _Reading:
    """One text, read from the left; each method reads what it is named for."""

    __slots__ = ("_at", "_depth", "_kind", "_path", "_references", "_text", "_token", "_token_at")

    def __init__(self, text: str, path: str) -> None:
        self._text = text
        self._path = path
        self._at = 0
        self._depth = 0
        self._references: list[Reference] = []
        self._kind: str | None = None
        self._token = ""
        self._token_at = 0
        self._next()

    def condition(self) -> Condition:
        if self._kind is None:
            self._refuse("The condition is empty.")
        evaluate = self._either()
        if self._kind is not None:
            self._refuse(f"{self._token} cannot stand here: 'and', 'or' or the end is expected.")
        return Condition(evaluate, tuple(self._references))

    def _either(self) -> _Evaluate:
        return self._joined("or", self._all, any)

    def _all(self) -> _Evaluate:
        return self._joined("and", self._negation, all)

    def _joined(self, word: str, part: Callable[[], _Evaluate], among: Callable[[Any], bool]) -> _Evaluate:
        starts = [self._token_at]
        parts = [part()]
        while self._is_word(word):
            self._next()
            starts.append(self._token_at)
            parts.append(part())
        if len(parts) == 1:
            return parts[0]
        named = [(one, self._text[at:][:64]) for one, at in zip(parts, starts, strict=True)]
        # Left to right, and no further than needed: what follows a null test may rely on it.
        return lambda known: among(_decided(one(known), name) for one, name in named)

    def _negation(self) -> _Evaluate:
        if not self._is_word("not"):
            return self._comparison()
        self._next()
        at = self._token_at
        self._deeper()
        inner = self._negation()
        self._depth -= 1
        name = self._text[at:][:64]
        return lambda known: not _decided(inner(known), name)

    def _comparison(self) -> _Evaluate:
        left = self._operand()
        operator = self._token
        if self._is_word("not"):
            self._next()
            if not self._is_word("in"):
                self._refuse("Only 'in' can follow 'not' here.")
            operator = "not in"
        if self._kind not in ("sign", "word") or operator not in _OPERATORS:
            return left
        start = self._token_at
        self._next()
        right = self._operand()
        if self._token in _OPERATORS and self._kind in ("sign", "word"):
            self._refuse("Comparisons do not follow each other: join them with 'and'.")
        where = f"At character {start + 1}"
        return lambda known: _compared(left(known), operator, right(known), where)

    def _operand(self) -> _Evaluate:
        kind, token = self._kind, self._token
        if kind == "sign" and token in "([":
            self._deeper()
            self._next()
            inner = self._either() if token == "(" else self._list()
            self._close(")" if token == "(" else "]")
            self._depth -= 1
            return inner
        value: Any = None
        if kind == "reference":
            return self._reference()
        if kind == "text":
            value = self._quoted()
        elif kind == "number":
            value = self._number()
        elif kind == "word" and token in _WORDS:
            value = _WORDS[token]
        elif kind == "word" and token not in ("and", "or", "not", "in"):
            self._refuse(f"The word '{token[:64]}' means nothing here: text is in quotes, a value is ${{params.name}}.")
        else:
            self._refuse(f"A value is expected{f', not {token}' if token else ' after this'}.")
        self._next()
        return lambda _known: value

    def _list(self) -> _Evaluate:
        items: list[_Evaluate] = []
        while not (self._kind == "sign" and self._token == "]"):
            items.append(self._operand())
            if not (self._kind == "sign" and self._token == ","):
                break
            self._next()
        return lambda known: [item(known) for item in items]

    def _reference(self) -> _Evaluate:
        try:
            (reference,) = pieces(self._token, self._path)
        except InvalidInput as refused:
            self._refuse(refused.message)
        if not isinstance(reference, Reference) or reference.names[0] == SECRETS:
            self._refuse("No condition can ask for a secret.")
        self._references.append(reference)
        self._next()
        return lambda known: look_up(reference, known, "if")

    def _quoted(self) -> str:
        if "${" in self._token:
            self._refuse("A template in quotes would be text: write it without quotes, as in ${params.region} == 'eu'.")
        return _ESCAPED.sub(r"\1", self._token[1:-1])

    def _number(self) -> float:
        if self._token.lstrip("-").isdecimal():
            if len(self._token) > _INTEGER_DIGITS_MAX:
                self._refuse(f"The number is too long: at most {_INTEGER_DIGITS_MAX} digits are right.")
            return int(self._token)
        if math.isinf(number := float(self._token)):
            self._refuse("The number is too large.")
        return number

    def _close(self, sign: str) -> None:
        if not (self._kind == "sign" and self._token == sign):
            self._refuse(f"'{sign}' is expected here.")
        self._next()

    def _deeper(self) -> None:
        self._depth += 1
        if self._depth > CONDITION_DEPTH_MAX:
            self._refuse(f"The condition is nested deeper than {CONDITION_DEPTH_MAX} levels.")

    def _is_word(self, word: str) -> bool:
        return self._kind == "word" and self._token == word

    def _next(self) -> None:
        found = _TOKEN.match(self._text, self._at)
        if found is None:
            self._token_at = _BLANK.match(self._text, self._at).end()  # type: ignore[union-attr]  # it matches always
            self._kind, self._token = None, ""
            if self._token_at < len(self._text):
                wrong = self._text[self._token_at]
                hint = {"=": ": '==' compares", "&": ": write 'and'", "|": ": write 'or'", "!": ": write 'not'"}
                unended = ": the text has no end" if wrong in "\"'" else ""
                self._refuse(f"{wrong} cannot stand here{hint.get(wrong, unended)}.")
            return
        self._kind = found.lastgroup
        self._token = found[found.lastgroup or 0]
        self._token_at = found.start(found.lastgroup or 0)
        self._at = found.end()

    def _refuse(self, message: str) -> NoReturn:
        raise InvalidInput(f"At character {self._token_at + 1}: {message}", self._path)


# Evaluating.


def _decided(value: Any, name: str) -> bool:
    if not isinstance(value, bool):
        raise InvalidInput(f"{shown(value)}, the value of {name}, is neither true nor false: compare it.", "if")
    return value


def _kind_of(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, str):
        return "text"
    return "an object" if isinstance(value, Mapping) else "a list"


def _compared(left: Any, operator: str, right: Any, where: str) -> bool:
    if operator in ("in", "not in"):
        return _is_in(left, right, where) == (operator == "in")
    kinds = _kind_of(left), _kind_of(right)
    if operator in ("==", "!="):
        if kinds[0] != kinds[1] and "null" not in kinds:
            raise InvalidInput(f"{where}: {_both(left, right)} are never equal, and so not compared.", "if")
        return _are_same(left, right) == (operator == "==")
    if kinds not in (("a number", "a number"), ("text", "text")):
        raise InvalidInput(f"{where}: {operator} compares two numbers or two texts, not {_both(left, right)}.", "if")
    return bool(
        left < right
        if operator == "<"
        else left <= right
        if operator == "<="
        else left > right
        if operator == ">"
        else left >= right
    )


def _is_in(left: Any, right: Any, where: str) -> bool:
    if isinstance(right, list | tuple):
        return any(_are_same(left, one) for one in right)
    if isinstance(left, str) and isinstance(right, str | Mapping):
        return left in right
    raise InvalidInput(
        f"{where}: 'in' looks for a value in a list, or for text in text or among an object's fields; "
        f"these are {_both(left, right)}.",
        "if",
    )


def _are_same(left: Any, right: Any) -> bool:
    """Equal as JSON has it: true is not 1, in a list neither."""
    if _kind_of(left) != _kind_of(right):
        return False
    if isinstance(left, Mapping):
        return left.keys() == right.keys() and all(_are_same(value, right[key]) for key, value in left.items())
    if isinstance(left, list | tuple):
        return len(left) == len(right) and all(map(_are_same, left, right))
    return bool(left == right)


def _both(left: Any, right: Any) -> str:
    return f"{shown(left)} ({_kind_of(left)}) and {shown(right)} ({_kind_of(right)})"
