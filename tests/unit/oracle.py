"""A second opinion on cron: brute force, sharing nothing with the code that it judges.

Expressions are generated together with what they mean, so no parser is needed. Around a clock change
every UTC minute is mapped to the wall time that zoneinfo gives it; wall times that no minute maps to
are those of a gap, and those of two minutes are a fold. The policies are then their own definitions.
"""

from __future__ import annotations

import calendar
import itertools
import random
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

MINUTE = timedelta(minutes=1)
MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
WEEKDAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]


@dataclass(frozen=True)
class Meaning:
    """An expression and what its author means."""

    text: str
    seconds: frozenset[int]
    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int | str] | None  # None: any; "L": the last
    months: frozenset[int]
    weekdays: frozenset[int | tuple[int, int | str]] | None  # None: any; (5, 2): second; (5, "L"): last

    @property
    def follows_real_time(self) -> bool:
        return self.text.split()[-4].startswith("*")

    def names_day(self, day: date) -> bool:
        if day.month not in self.months:
            return False
        if self.days is not None and self.weekdays is not None:
            return self._by_day(day) or self._by_weekday(day)
        return self._by_day(day) and self._by_weekday(day)

    def _by_day(self, day: date) -> bool:
        length = calendar.monthrange(day.year, day.month)[1]
        return self.days is None or day.day in self.days or ("L" in self.days and day.day == length)

    def _by_weekday(self, day: date) -> bool:
        if self.weekdays is None:
            return True
        weekday = day.isoweekday() % 7
        sevens = 1
        while day.day - 7 * sevens > 0:
            sevens += 1
        is_last = (day + timedelta(days=7)).month != day.month
        return (
            weekday in self.weekdays
            or (weekday, sevens) in self.weekdays
            or (is_last and (weekday, "L") in self.weekdays)
        )


def clock_changes(tz: ZoneInfo, years: range) -> list[datetime]:
    """The first instant under each new offset."""
    step = timedelta(hours=6)
    at, end = datetime(years[0], 1, 1, tzinfo=UTC), datetime(years[-1] + 1, 1, 1, tzinfo=UTC)
    changes = []
    while at < end:
        if at.astimezone(tz).utcoffset() != (at + step).astimezone(tz).utcoffset():
            moment = at
            while moment.astimezone(tz).utcoffset() == at.astimezone(tz).utcoffset():
                moment += MINUTE
            changes.append(moment)
        at += step
    return changes


class Window:
    """All minutes around an instant, by the wall time that clocks in the zone show."""

    def __init__(self, tz: ZoneInfo, middle: datetime, half: timedelta = timedelta(hours=36)) -> None:
        self.start, self.end = middle - half, middle + half
        self.shown: dict[datetime, list[datetime]] = {}
        self.missing: dict[datetime, datetime] = {}
        previous: datetime | None = None
        at = self.start
        while at < self.end:
            wall = at.astimezone(tz).replace(tzinfo=None, fold=0)
            self.shown.setdefault(wall, []).append(at)
            # Clocks leapt: the walls in between, read as if they had not.
            leapt = previous + MINUTE if previous else wall
            late = at
            while leapt < wall:
                self.missing[leapt] = late
                leapt, late = leapt + MINUTE, late + MINUTE
            previous = wall
            at += MINUTE
        walls = self.shown.keys() | self.missing.keys()
        self.days = sorted({wall.date() for wall in walls})
        # By day and hour, so that hundreds of expressions need not hash hundreds of wall times each.
        self.hours = {(day, hour): self._hour(day, hour) for day in self.days for hour in range(24)}

    def _hour(self, day: date, hour: int) -> list[tuple[list[datetime], datetime | None]]:
        opening = datetime(day.year, day.month, day.day, hour)  # noqa: DTZ001 - a wall time
        walls = [opening + minute * MINUTE for minute in range(60)]
        return [(self.shown.get(wall, []), self.missing.get(wall)) for wall in walls]

    def fires(self, meaning: Meaning) -> dict[tuple[str, str], list[datetime]]:
        """What should fire in the window under each (gap, fold) policy."""
        once: list[datetime] = []
        again: list[datetime] = []
        moved: list[datetime] = []
        days = [day for day in self.days if meaning.names_day(day)]
        for opening in itertools.product(days, meaning.hours):
            hour = self.hours[opening]
            for minute in meaning.minutes:
                shown, late = hour[minute]
                once += shown[:1]
                again += shown[1:]
                if late:
                    moved.append(late)
        if meaning.follows_real_time:
            true = self._seconds(meaning, once + again)
            return {(gap, fold): true for gap in ("shift", "skip") for fold in ("first", "both")}
        return {
            ("shift", "first"): self._seconds(meaning, once + moved),
            ("shift", "both"): self._seconds(meaning, once + moved + again),
            ("skip", "first"): self._seconds(meaning, once),
            ("skip", "both"): self._seconds(meaning, once + again),
        }

    def _seconds(self, meaning: Meaning, minutes: list[datetime]) -> list[datetime]:
        if meaning.seconds == {0}:
            return sorted(set(minutes))
        return sorted({at + timedelta(seconds=second) for at in minutes for second in meaning.seconds})


def meanings(seed: int, count: int) -> list[Meaning]:
    """Generated expressions of every form, the same for the same seed; clock changes are aimed at."""
    dice = random.Random(seed)
    return [_meaning(dice) for _ in range(count)]


def _meaning(dice: random.Random) -> Meaning:
    seconds_text, seconds = ("*/30", frozenset({0, 30})) if dice.random() < 0.1 else ("", frozenset({0}))
    minutes_text, minutes = _field(dice, 0, 59, few=dice.random() < 0.97)
    hours_text, hours = _hours(dice)
    days_text, days = _days(dice)
    months_text, months = ("*", frozenset(range(1, 13))) if dice.random() < 0.8 else _months(dice)
    weekdays_text, weekdays = _weekdays(dice)
    texts = [seconds_text, minutes_text, hours_text, days_text, months_text, weekdays_text]
    text = " ".join(filter(None, texts))
    return Meaning(text, seconds, minutes, hours, days, months, weekdays)


def _field(dice: random.Random, low: int, high: int, *, few: bool) -> tuple[str, frozenset[int]]:
    """A list of values, ranges and steps."""
    parts = [_part(dice, low, high, few=few) for _ in range(dice.choice([1, 1, 1, 1, 2]))]
    if any(text == "*" for text, _ in parts):
        return "*", frozenset(range(low, high + 1))
    return ",".join(text for text, _ in parts), frozenset().union(*(values for _, values in parts))


def _part(dice: random.Random, low: int, high: int, *, few: bool) -> tuple[str, set[int]]:
    size = high - low + 1
    form = dice.choice(["value", "value", "step", "from"] if few else ["value", "range", "wrap", "step", "*"])
    step = dice.randint(max(2, size // 4), size - 1) if few else dice.randint(2, max(2, size // 3))
    first, last = sorted(dice.sample(range(low, high + 1), 2))
    match form:
        case "value":
            return str(first), {first}
        case "range":
            return f"{first}-{last}/{step}", set(range(first, last + 1, step))
        case "wrap":
            return f"{last}-{first}", set(range(last, high + 1)) | set(range(low, first + 1))
        case "step":
            return f"*/{step}", set(range(low, high + 1, step))
        case "from":
            return f"{first}/{step}", set(range(first, high + 1, step))
        case _:
            return "*", set(range(low, high + 1))


def _hours(dice: random.Random) -> tuple[str, frozenset[int]]:
    kind = dice.random()
    if kind < 0.1:
        return "*", frozenset(range(24))
    if kind < 0.25:
        step = dice.choice([2, 3, 4, 5, 6, 7, 8, 12])
        return f"*/{step}", frozenset(range(0, 24, step))
    if kind < 0.45:
        return _field(dice, 0, 23, few=False)
    # Clocks change at night: there the policies matter.
    night = sorted(dice.sample([0, 1, 2, 3, 4, 22, 23], dice.choice([1, 2, 3])))
    if kind < 0.7:
        return ",".join(map(str, night)), frozenset(night)
    return f"{night[0]}-{night[-1]}", frozenset(range(night[0], night[-1] + 1))


def _months(dice: random.Random) -> tuple[str, frozenset[int]]:
    first = dice.randint(1, 12)
    last = dice.randint(1, 12)
    if first == last:
        return MONTHS[first - 1], frozenset({first})
    wrapped = range(first, last + 1) if first < last else [*range(first, 13), *range(1, last + 1)]
    return f"{MONTHS[first - 1]}-{MONTHS[last - 1]}", frozenset(wrapped)


def _days(dice: random.Random) -> tuple[str, frozenset[int | str] | None]:
    kind = dice.random()
    if kind < 0.7:
        return dice.choice(["*", "*", "?", "*/1"]), None
    if kind < 0.8:
        return "L", frozenset({"L"})
    text, values = _field(dice, 1, 31, few=dice.random() < 0.3)
    if text == "*":
        return text, None
    if kind < 0.85:
        return f"{text},L", frozenset({*values, "L"})
    return text, frozenset(values)


def _weekdays(dice: random.Random) -> tuple[str, frozenset[int | tuple[int, int | str]] | None]:
    kind, weekday = dice.random(), dice.randint(0, 6)
    if kind < 0.55:
        return dice.choice(["*", "?"]), None
    if kind < 0.65:
        nth = dice.randint(1, 5)
        return f"{dice.choice([WEEKDAYS[weekday], weekday])}#{nth}", frozenset({(weekday, nth)})
    if kind < 0.72:
        text = dice.choice([f"L{weekday}", f"{weekday}L", f"{WEEKDAYS[weekday]}L"])
        return text, frozenset({(weekday, "L")})
    if kind < 0.8:
        return f"sat-mon,{WEEKDAYS[weekday]}", frozenset({6, 0, 1, weekday})
    if kind < 0.86:
        return "5-7", frozenset({5, 6, 0})
    if kind < 0.93:
        return f"7,{weekday}", frozenset({0, weekday})
    return f"sun,{weekday}#1", frozenset({0, (weekday, 1)})
