"""Schedules as people write them, compiled: cron expressions, and EventBridge's `cron(…)` and `rate(…)`.

croniter expands values, ranges, steps and hashes; the grammar around it is ours, because a refusal must
name the field, and because croniter reads some texts in ways nobody means (`5-5` as every minute).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Final, NoReturn

from msgspec import Struct, field
from msgspec.structs import replace

from sweephand.domain.cron import FIRST_YEAR, Cron
from sweephand.domain.schedule import PERIOD_MAX, Every
from sweephand.errors import InvalidInput

__all__ = ["TEXT_MAX", "parse"]

TEXT_MAX: Final = 256

_ALIASES: Final[Mapping[str, str]] = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_MONTH_NAMES: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTHS: Final = {name: number for number, name in enumerate(_MONTH_NAMES, start=1)}
_WEEKDAYS: Final = {"sun": 0, "mon": 1, "tue": 2, "wed": 3, "thu": 4, "fri": 5, "sat": 6}
_UNITS: Final = {"minute": timedelta(minutes=1), "hour": timedelta(hours=1), "day": timedelta(days=1)}

_EVENTBRIDGE: Final = re.compile(r"cron\s*\((?P<fields>[^()]*)\)")
_RATE: Final = re.compile(r"rate\s*\(\s*(?P<value>[0-9]{1,9})\s+(?P<unit>[a-z]+)\s*\)")
_ITEM: Final = re.compile(r"(?P<low>\*|[0-9]+|[a-z]+)(-(?P<high>[0-9]+|[a-z]+))?(/(?P<step>[0-9]+))?")
_HASH: Final = re.compile(r"h(\((?P<low>[0-9]+)-(?P<high>[0-9]+)\))?(/(?P<step>[0-9]+))?")
_RANDOM: Final = re.compile(r"r(\([0-9-]*\))?(/[0-9]*)?")
_NTH: Final = re.compile(r"(?P<weekday>[0-9]+|[a-z]+)#(?P<nth>[0-9]+)")
_LAST_WEEKDAY: Final = re.compile(r"l(?P<after>[0-9]|[a-z]{3})|(?P<before>[0-9]|[a-z]{3})l")
_NEAREST: Final = re.compile(r"(?P<day>[0-9]+)w")


class _Field(Struct, frozen=True):
    """One column of an expression: its values as written, and where croniter looks for it."""

    name: str
    low: int
    high: int
    column: int
    names: Mapping[str, int] = field(default_factory=dict)
    # What to subtract from a number as written: EventBridge counts weekdays from 1.
    shift: int = 0

    @property
    def size(self) -> int:
        return self.high - self.low + 1

    @property
    def is_day(self) -> bool:
        return self.column == _DAY

    @property
    def is_weekday(self) -> bool:
        return self.column == _WEEKDAY


_DAY: Final = 2
_WEEKDAY: Final = 4
_SECOND: Final = 5

_SECONDS: Final = _Field("second", 0, 59, _SECOND)
_CRON_FIELDS: Final = (
    _Field("minute", 0, 59, 0),
    _Field("hour", 0, 23, 1),
    _Field("day-of-month", 1, 31, _DAY),
    _Field("month", 1, 12, 3, _MONTHS),
    _Field("day-of-week", 0, 7, _WEEKDAY, _WEEKDAYS),
)
_EVENTBRIDGE_FIELDS: Final = (
    *_CRON_FIELDS[:4],
    _Field("day-of-week", 1, 7, _WEEKDAY, {name: number + 1 for name, number in _WEEKDAYS.items()}, shift=1),
)
_YEARS: Final = _Field("year", FIRST_YEAR, 2199, 6)


class _Marks(Struct, frozen=True):
    """What an item of a list adds to the compiled form; its plain values are left for croniter to expand."""

    plain: tuple[str, ...] = ()
    last_day: bool = False
    nth_weekdays: int = 0
    last_weekdays: int = 0
    nearest_days: int = 0

    def __or__(self, other: _Marks) -> _Marks:
        return _Marks(
            self.plain + other.plain,
            self.last_day or other.last_day,
            self.nth_weekdays | other.nth_weekdays,
            self.last_weekdays | other.last_weekdays,
            self.nearest_days | other.nearest_days,
        )


class _Column(Struct, frozen=True):
    """One field's text under parsing, and how to refuse it."""

    field: _Field
    text: str
    hash_id: str
    path: str
    is_eventbridge: bool = False

    def refuse(self, why: str) -> NoReturn:
        raise InvalidInput(f"{self.field.name} field '{self.text}': {why}", path=self.path)


def parse(text: str, *, hash_id: str, path: str = "schedule.cron") -> Cron | Every:
    """The compiled form of a schedule's text; `H` is derived from `hash_id`, so it never moves.

    An interval from `rate(…)` comes anchored at the Unix epoch: the caller knows a better anchor.
    """
    written = _checked(text, path).lower()
    if written.startswith("rate"):
        return _rate(written, path)
    if written.startswith("cron"):
        cron = _eventbridge(written, path)
    else:
        cron = _plain(written, hash_id, path)
    if not cron.ever_fires():
        raise InvalidInput(
            f"day-of-month, month and day-of-week fields of '{written}': no such day ever comes.", path=path
        )
    return cron


def _checked(text: object, path: str) -> str:
    if not isinstance(text, str):
        raise InvalidInput("A cron expression is text, such as '0 6 * * 1-5'.", path=path)
    if len(text) > TEXT_MAX:
        raise InvalidInput(f"The expression has {len(text)} characters: at most {TEXT_MAX} are read.", path=path)
    # croniter takes Arabic digits for numbers; control characters would pass as spaces.
    strange = next((char for char in text if not (" " <= char <= "~" or char in "\t\r\n")), None)
    if strange is not None:
        raise InvalidInput(f"The expression contains {strange!a}: use plain ASCII.", path=path)
    return text.strip()


def _plain(written: str, hash_id: str, path: str) -> Cron:
    if written.startswith("@"):
        written = _alias(written, path)
    texts = written.split()
    if len(texts) not in (5, 6):
        raise InvalidInput(
            f"The expression has {_fields(len(texts))}: "
            "write 5 (minute hour day-of-month month day-of-week), or 6 with the second first.",
            path=path,
        )
    seconds = 1
    if len(texts) == 6:
        seconds, _ = _read(_Column(_SECONDS, texts.pop(0), hash_id, path))
    columns = [_Column(column, text, hash_id, path) for column, text in zip(_CRON_FIELDS, texts, strict=True)]
    return _compiled(columns, seconds)


def _fields(number: int) -> str:
    return "1 field" if number == 1 else f"{number} fields"


def _alias(written: str, path: str) -> str:
    if written not in _ALIASES:
        why = "there is no boot to wait for" if written == "@reboot" else "it is unknown"
        raise InvalidInput(f"'{written}' is refused, {why}: use one of {', '.join(_ALIASES)}.", path=path)
    return _ALIASES[written]


def _rate(written: str, path: str) -> Every:
    matched = _RATE.fullmatch(written)
    right = "write rate(5 minutes), rate(1 hour) or rate(7 days)"
    if matched is None:
        raise InvalidInput(f"'{written}' is not a rate: {right}.", path=path)
    value, unit = int(matched["value"]), matched["unit"]
    if unit.removesuffix("s") not in _UNITS or unit.endswith("s") == (value == 1):
        raise InvalidInput(
            f"rate unit '{unit}': use minute, hour or day for 1, and minutes, hours or days for more.",
            path=path,
        )
    period = value * _UNITS[unit.removesuffix("s")] if value <= PERIOD_MAX.days * 1440 else timedelta.max
    if not value or period > PERIOD_MAX:
        raise InvalidInput(f"rate value '{value}': use 1 minute to {PERIOD_MAX.days} days, as in: {right}.", path=path)
    return Every(period)


def _eventbridge(written: str, path: str) -> Cron:
    matched = _EVENTBRIDGE.fullmatch(written)
    texts = matched["fields"].split() if matched else []
    if len(texts) != 6:
        raise InvalidInput(
            f"'{written}' is not EventBridge's form: write "
            "cron(minute hour day-of-month month day-of-week year), 6 fields.",
            path=path,
        )
    day, weekday, year = texts[_DAY], texts[_WEEKDAY], texts.pop()
    if (day == "?") == (weekday == "?"):
        raise InvalidInput(
            f"day-of-month field '{day}' and day-of-week field '{weekday}': exactly one of them must be '?'.",
            path=path,
        )
    columns = [
        _Column(column, text, "", path, is_eventbridge=True)
        for column, text in zip(_EVENTBRIDGE_FIELDS, texts, strict=True)
    ]
    years = _year_set(_Column(_YEARS, year, "", path, is_eventbridge=True))
    return replace(_compiled(columns, seconds=1), years=years)


def _compiled(columns: list[_Column], seconds: int) -> Cron:
    (minutes, _), (hours, _), (days, day), (months, _), (weekdays, weekday) = map(_read, columns)
    day_text, weekday_text = columns[_DAY].text, columns[_WEEKDAY].text
    return Cron(
        seconds,
        minutes,
        hours,
        days,
        months,
        weekdays,
        last_day=day.last_day,
        nth_weekdays=weekday.nth_weekdays,
        last_weekdays=weekday.last_weekdays,
        nearest_days=day.nearest_days,
        days_restricted=day_text not in _UNRESTRICTED,
        weekdays_restricted=weekday_text not in _UNRESTRICTED,
        follows_real_time=columns[1].text.startswith("*"),
    )


_UNRESTRICTED: Final = ("*", "?", "*/1")


def _read(column: _Column) -> tuple[int, _Marks]:
    """One field: the bit set of its plain values, and what else it names."""
    marks = _marks(column)
    # All at once, and only after every item has passed our grammar: that bounds the work of a refusal.
    return (_expanded(column, ",".join(dict.fromkeys(marks.plain))) if marks.plain else 0), marks


def _marks(column: _Column) -> _Marks:
    if column.text == "?" and (column.field.is_day or column.field.is_weekday):
        return _Marks(plain=("*",))
    items = list(dict.fromkeys(column.text.split(",")))
    if len(items) > 1 and "*" in items:
        column.refuse("'*' is already every value: leave out the rest of the list.")
    marks = _Marks()
    for item in items:
        marks |= _item_marks(column, item)
    return marks


def _item_marks(column: _Column, item: str) -> _Marks:
    if column.field.is_day and (marks := _day_marks(column, item)):
        return marks
    if column.field.is_weekday and (marks := _weekday_marks(column, item)):
        return marks
    if _RANDOM.fullmatch(item):
        column.refuse("'R' would move at every reading: use 'H', which is derived from the job's name.")
    if matched := _HASH.fullmatch(item):
        return _Marks(plain=_hashed(column, matched))
    if matched := _ITEM.fullmatch(item):
        return _Marks(plain=_ranged(column, matched))
    return column.refuse(f"'{item}' is not a value, a range, a step or a list of these.")


def _day_marks(column: _Column, item: str) -> _Marks | None:
    """`L`, and from EventBridge `15W` and `LW`."""
    if item == "l":
        return _Marks(last_day=True)
    matched = _NEAREST.fullmatch(item)
    if item != "lw" and not matched:
        return None
    if not column.is_eventbridge:
        column.refuse("'W' is known in EventBridge's form only: cron(0 6 15W * ? *).")
    return _Marks(nearest_days=1 << (_number(column, matched["day"]) if matched else 0))


def _weekday_marks(column: _Column, item: str) -> _Marks | None:
    """`fri#2`, `L5` and `5L`, and from EventBridge `L`, the last day of the week."""
    if item == "l" and column.is_eventbridge:
        return _Marks(plain=(str(_WEEKDAYS["sat"]),))
    if matched := _NTH.fullmatch(item):
        weekday, nth = _weekday(column, matched["weekday"]), int(matched["nth"][:9])
        if not 1 <= nth <= 5:
            column.refuse(f"there is no weekday number {nth} in a month: use #1 to #5.")
        return _Marks(nth_weekdays=1 << (5 * weekday + nth - 1))
    if matched := _LAST_WEEKDAY.fullmatch(item):
        return _Marks(last_weekdays=1 << _weekday(column, matched["after"] or matched["before"]))
    return None


def _weekday(column: _Column, text: str) -> int:
    return (_number(column, text) - column.field.shift) % 7


def _number(column: _Column, text: str) -> int:
    """A value as written, by number or by name, within the field's range."""
    bounds = f"use {column.field.low} to {column.field.high}"
    if not text.isdigit():
        if text not in column.field.names:
            known = f" or {', '.join(column.field.names)}" if column.field.names else ""
            column.refuse(f"'{text}' is unknown: {bounds}{known}.")
        return column.field.names[text]
    if len(text) > 4 or not column.field.low <= int(text) <= column.field.high:
        column.refuse(f"{text} is out of range: {bounds}.")
    return int(text)


def _step(column: _Column, text: str | None, size: int) -> int:
    if text is None:
        return 1
    if len(text) > 4 or not 1 <= int(text) <= size:
        column.refuse(f"a step of {text} is out of range: use 1 to {size}.")
    return int(text)


def _ranged(column: _Column, matched: re.Match[str]) -> tuple[str, ...]:
    """A value, a range or a step; a range may wrap (fri-mon), and 5-5 is just 5."""
    step = _step(column, matched["step"], column.field.size)
    if matched["low"] == "*":
        if matched["high"]:
            column.refuse("a range begins with a value, not with '*'.")
        return ("*" if step == 1 else f"*/{step}",)
    low = _number(column, matched["low"])
    if not matched["high"]:
        shifted = low - column.field.shift
        return (f"{shifted}/{step}" if matched["step"] else f"{shifted}",)
    return _run(column, low, _number(column, matched["high"]), step)


def _run(column: _Column, low: int, high: int, step: int) -> tuple[str, ...]:
    """A range, which wraps where it ends before it begins; croniter loses count of a step there."""
    low, high = low - column.field.shift, high - column.field.shift
    bottom, top = (0, 6) if column.field.is_weekday else (column.field.low, column.field.high)
    if column.field.is_weekday and low == 7:
        low, high = 0, high % 7
    if column.field.is_weekday and high == 7:
        high = 0 if low else 6  # fri-7 ends on Sunday, and 0-7 is the whole week
    if low <= high:
        return (_rising(low, high, step),)
    again = bottom + (low - top - 1) % step
    before = _rising(low, top, step)
    return (before, _rising(again, high, step)) if again <= high else (before,)


def _rising(low: int, high: int, step: int) -> str:
    # croniter reads 5-5 as the whole field.
    return f"{low}" if low == high else f"{low}-{high}/{step}"


def _hashed(column: _Column, matched: re.Match[str]) -> tuple[str, ...]:
    """`H`, `H/15`, `H(0-29)`, `H(0-29)/10`: a value, or the first of a step, that the hash chooses."""
    if column.is_eventbridge:
        column.refuse("'H' is not known in EventBridge's form.")
    low, high = column.field.low, column.field.high
    if column.field.is_weekday:
        high = 6
    if column.field.is_day and not matched["step"]:
        high = 28  # a day that every month has
    if matched["low"]:
        low, high = _number(column, matched["low"]), _number(column, matched["high"])
    if low >= high:
        column.refuse("the range of 'H' must rise, as in H(0-29).")
    if not matched["step"]:
        return (str(_hash(column, low, high)),)
    step = _step(column, matched["step"], high - low + 1)
    # Not croniter's own H(…)/n: where the first value is the last, it reads the range as the whole field.
    first = low if step == 1 else _hash(column, low, low + step - 1)
    return _run(column, first, high, step)


def _hash(column: _Column, low: int, high: int) -> int:
    return _expanded(column, f"h({low}-{high})").bit_length() - 1


def _expanded(column: _Column, items: str) -> int:
    """The bit set of a list that has passed our grammar, as croniter expands it."""
    from croniter import CroniterError, croniter  # late: the Lambdas that only step never load it

    frame = ["*"] * 5
    if column.field.column == _SECOND:
        frame.insert(0, items)
    else:
        frame[column.field.column] = items
    try:
        expanded, _ = croniter.expand(" ".join(frame), hash_id=column.hash_id.encode(), second_at_beginning=True)
    except CroniterError:
        column.refuse("it cannot be read.")
    if "*" in expanded[column.field.column]:
        top = 6 if column.field.is_weekday else column.field.high
        low = 0 if column.field.is_weekday else column.field.low
        return (1 << top + 1) - (1 << low)
    return sum(1 << int(value) for value in expanded[column.field.column])


def _year_set(column: _Column) -> int | None:
    """EventBridge's years; croniter ends at 2099."""
    if column.text == "*":
        return None
    years = 0
    for item in column.text.split(","):
        matched = _ITEM.fullmatch(item)
        if matched is None or item == "*":
            column.refuse(f"'{item}' is not a year, a range, a step or a list of these.")
        step = _step(column, matched["step"], _YEARS.size)
        low = _YEARS.low if matched["low"] == "*" else _number(column, matched["low"])
        open_end = _YEARS.high if matched["step"] else low
        high = _number(column, matched["high"]) if matched["high"] else open_end
        if high < low:
            column.refuse("a range of years must rise.")
        years |= sum(1 << (year - FIRST_YEAR) for year in range(low, high + 1, step))
    return years
