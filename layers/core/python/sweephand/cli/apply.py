"""`sweephand apply`: every file is checked and its effect shown before anything changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

import click
from msgspec import Struct
from msgspec.structs import replace

from sweephand.cli.documents import Written, read_all
from sweephand.cli.program import program
from sweephand.cli.session import Session, agreed, pass_session, report
from sweephand.cli.show import Output, difference, local, progress, visible
from sweephand.errors import Conflict, InvalidInput, NotFound, SweephandError

if TYPE_CHECKING:
    from sweephand.client import Client

WOULD_CHANGE: Final = 2
FIRES_TOLD: Final = 3

_SIGNS: Final = {"create": ("+", "green"), "change": ("~", "yellow"), "none": ("=", "dim")}
_WORDS: Final = {"create": "to create", "change": "to change", "none": "unchanged"}


class Step(Struct, frozen=True):
    """What one document would do, and what came of it."""

    written: Written
    plan: dict[str, Any]
    outcome: str = "planned"

    @property
    def name(self) -> str:
        return str(self.written.document["name"])

    @property
    def action(self) -> str:
        return str(self.plan["difference"]["action"])

    @property
    def version(self) -> int | None:
        """The version that the change is based on; None where there is no such job yet."""
        version = self.plan["difference"].get("version")
        return None if self.action == "create" or version is None else int(version)

    def encode(self) -> dict[str, Any]:
        """For programs."""
        told = {field: self.plan.get(field) for field in ("fires", "notes", "runsPerDay")}
        changes = self.plan["difference"].get("changes", [])
        return {
            "name": self.name,
            "file": self.written.source,
            "action": self.action,
            "version": self.version,
            "changes": changes,
            **told,
            "outcome": self.outcome,
        }


@program.command(example="sweephand apply -f jobs/ --dry-run")
@click.option("-f", "--file", "files", multiple=True, metavar="FILE|DIR", help="A job file, a folder of them, or -.")
@click.argument("more", nargs=-1, metavar="[FILE|DIR]...", type=click.Path())
@click.option("--dry-run", is_flag=True, help="Show the plan only; exit code 2 where something would change.")
@click.option("-y", "--yes", is_flag=True, help="Ask no question.")
@pass_session
def apply(session: Session, files: tuple[str, ...], more: tuple[str, ...], dry_run: bool, yes: bool) -> None:
    """Make the jobs of these files the jobs that there are: YAML (one or more documents) or JSON.

    All files are checked first: a bad one changes nothing. Jobs without a file stay as they are.
    """
    if not files and not more:
        raise click.UsageError("Which files? Give -f FILE, -f DIR, or -f - for standard input.")
    written = read_all([*files, *more])
    steps = _planned(session.client, written)
    for step in steps:
        _tell(session.output, step)
    counts = Counter(step.action for step in steps)
    summary = ", ".join(f"{counts[action]} {word}" for action, word in _WORDS.items() if counts[action])
    session.output.say(f"Plan: {summary}.")
    changes = len(steps) - counts["none"]
    if dry_run or not changes:
        _finish(session.output, steps)
        click.get_current_context().exit(WOULD_CHANGE if changes else 0)
    agreed("Apply this plan?", yes=yes)
    steps, errors = _carried_out(session.client, steps)
    _finish(session.output, steps)
    session.output.say(f"Applied {sum(step.outcome == 'applied' for step in steps)} of {changes}.")
    if errors:
        report(InvalidInput(f"{len(errors)} not applied: apply again to see what is left.", errors=tuple(errors)))
        click.get_current_context().exit(1)


def _planned(client: Client, written: list[Written]) -> list[Step]:
    """Every document's effect, or one refusal with what is wrong in all of them."""
    errors = [*_twice(written)]
    steps = []
    with progress("Checking", len(written)) as told:
        for done, one in enumerate(written, 1):
            try:
                steps.append(Step(one, client.plan(one.document)))
            except InvalidInput as refused:
                errors += [(f"{one.source}: {path}" if path else one.source, text) for path, text in refused.errors]
            except (Conflict, NotFound) as refused:
                errors.append((one.source, refused.message))
            told(done)
    if errors:
        raise InvalidInput("Nothing was changed.", errors=tuple(errors))
    return steps


def _twice(written: Iterable[Written]) -> Iterator[tuple[str, str]]:
    first: dict[object, str] = {}
    for one in written:
        name = str(one.document.get("name"))
        if "name" in one.document and name in first:
            yield f"{one.source}: name", f"The job {name!r} is in {first[name]} too."
        first.setdefault(name, one.source)


def _carried_out(client: Client, steps: list[Step]) -> tuple[list[Step], list[tuple[str, str]]]:
    """What came of each step. One job's conflict does not stop the others; a server that refuses stops all."""
    done: list[Step] = []
    errors: list[tuple[str, str]] = []
    is_over = False
    with progress("Applying", len(steps)) as told:
        for step in steps:
            outcome = "not tried"
            try:
                outcome = outcome if is_over else _carry_out(client, step)
            except SweephandError as error:
                outcome = "failed"
                is_over = not isinstance(error, Conflict | InvalidInput | NotFound)
                errors.append((f"{step.written.source}: {step.name}", error.message))
            done.append(replace(step, outcome=outcome))
            told(len(done))
    return done, errors


def _carry_out(client: Client, step: Step) -> str:
    if step.action == "none":
        return "unchanged"
    # Based on the version that the plan was shown for: somebody's edit in between is a Conflict, not overwritten.
    client.put(step.written.document, version=step.version)
    return "applied"


def _tell(output: Output, step: Step) -> None:
    sign, style = _SIGNS[step.action]
    version = f" (version {step.version})" if step.action == "change" else ""
    output.say(f"{sign} {visible(step.name)}: {_WORDS[step.action]}{version}, {visible(step.written.source)}", style)
    if step.action == "none":
        return
    if step.action == "change":
        for line in difference(step.plan["difference"].get("changes", [])):
            output.say(f"    {line}", {"+": "green", "-": "red"}.get(line[0], "yellow"))
    output.say(f"    {in_words(step.plan)}")
    for note in step.plan.get("notes") or ():
        output.say(f"    note: {visible(note if isinstance(note, str) else str(note))}")


def in_words(plan: dict[str, Any]) -> str:
    """When a definition would fire, as a sentence."""
    fires = [local(fire["fireAt"]) for fire in (plan.get("fires") or ())[:FIRES_TOLD]]
    if not fires:
        return "Fires at no time of its own: a trigger, an event or another job starts it."
    per_day = plan.get("runsPerDay")
    often = f"; {per_day:g} a day" if isinstance(per_day, int | float) and per_day else ""
    then = f", then {', '.join(fires[1:])}" if fires[1:] else " and not again within a year"
    return f"Fires at {fires[0]}{then}{often}."


def _finish(output: Output, steps: list[Step]) -> None:
    if output.as_json:
        output.json([step.encode() for step in steps])
