"""`sweephand apply`: every file is checked and its effect shown before anything changes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

import click
from msgspec import Struct
from msgspec.structs import replace

from sweephand.cli.documents import Errors, Written, read_each
from sweephand.cli.program import program
from sweephand.cli.session import Session, agreed, pass_session, report
from sweephand.cli.show import Output, local, progress, visible
from sweephand.errors import Conflict, InvalidInput, NotFound, SweephandError

if TYPE_CHECKING:
    from sweephand.cli.packing import Packer
    from sweephand.client import Client
    from sweephand.packs import Pack

WOULD_CHANGE: Final = 2
FIRES_TOLD: Final = 3

_SIGNS: Final = {
    "create": ("+", "green"),
    "change": ("~", "yellow"),
    "delete": ("-", "red"),
    "none": ("=", "dim"),
}
_WORDS: Final = {"create": "to create", "change": "to change", "delete": "to delete", "none": "unchanged"}
_LABEL: Final = re.compile(r"[^\s=]+=\S+")


class Step(Struct, frozen=True):
    """What one document would do, and what came of it."""

    written: Written
    plan: dict[str, Any]
    outcome: str = "planned"
    pack: Pack | None = None
    """What its functions are imported from."""

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
        told = {field: self.plan.get(field) for field in ("fires", "notes", "runsPerDay", "costPerMonth")}
        difference = self.plan["difference"]
        return {
            "name": self.name,
            "file": self.written.source or None,
            "action": self.action,
            "version": self.version,
            "changes": difference.get("changes", []),
            "summary": difference.get("summary", []),
            **told,
            "outcome": self.outcome,
        }


@program.command(example="sweephand apply -f jobs/ --dry-run")
@click.option("-f", "--file", "files", multiple=True, metavar="FILE|DIR", help="A job file, a folder of them, or -.")
@click.argument("more", nargs=-1, metavar="[FILE|DIR]...", type=click.Path())
@click.option("--dry-run", is_flag=True, help="Show the plan only; exit code 2 where something would change.")
@click.option("--label", "labels", multiple=True, metavar="KEY=VALUE", help="A tag for every job of these files.")
@click.option("--prune", is_flag=True, help="Delete the jobs with the --label that no file has any more.")
@click.option("--keep-going", is_flag=True, help="Apply what is right although something else is wrong.")
@click.option("-y", "--yes", is_flag=True, help="Ask no question.")
@pass_session
def apply(
    session: Session,
    files: tuple[str, ...],
    more: tuple[str, ...],
    dry_run: bool,
    labels: tuple[str, ...],
    prune: bool,
    keep_going: bool,
    yes: bool,
) -> None:
    """Make the jobs of these files the jobs that there are: YAML (one or more documents), JSON or Python.

    All files are checked first: a bad one changes nothing. Jobs without a file stay as they are, unless --prune says
    that the label is these files' own.
    """
    _check_words([*files, *more], labels, prune=prune)
    written, errors = read_each([*files, *more])
    steps = _planned(session.client, [_labelled(one, labels) for one in written], errors)
    if errors and not keep_going:
        raise InvalidInput("Nothing was changed.", errors=tuple(errors))
    if prune and not errors:  # a job of a file that could not be read is not gone
        steps += _to_delete(session.client, labels, {step.name for step in steps})
    changes = _tell_all(session.output, steps)
    is_over = dry_run or not changes
    if not is_over:
        agreed("Apply this plan?", yes=yes)
        steps = _carried_out(session.client, steps, errors)
    if session.output.as_json:
        session.output.json([step.encode() for step in steps])
    if not is_over:
        session.output.say(f"Applied {sum(step.outcome == 'applied' for step in steps)} of {changes}.")
    if errors:
        report(InvalidInput(f"{len(errors)} not applied: apply again to see what is left.", errors=tuple(errors)))
    click.get_current_context().exit(1 if errors else WOULD_CHANGE if dry_run and changes else 0)


def _check_words(files: list[str], labels: Iterable[str], *, prune: bool) -> None:
    if not files:
        raise click.UsageError("Which files? Give -f FILE, -f DIR, or -f - for standard input.")
    for label in labels:
        if not _LABEL.fullmatch(label):
            raise click.UsageError(f"A label is KEY=VALUE, such as team=sales, and not {label!r}.")
    if prune and not labels:
        raise click.UsageError("--prune needs a --label: only jobs that have it are deleted.")


def _labelled(one: Written, labels: tuple[str, ...]) -> Written:
    """With the labels among its tags, by which `--prune` knows it again."""
    tags = one.document.get("tags") or []
    if not labels or not isinstance(tags, list):
        return one  # what is no list is refused by the server
    fresh = [label for label in labels if label not in tags]
    return replace(one, document={**one.document, "tags": [*tags, *fresh]})


def _planned(client: Client, written: list[Written], errors: Errors) -> list[Step]:
    """Every document's effect; what is wrong is added to the errors."""
    written = distinct(written, errors)
    steps = []
    packing = Packing(client.code.target)
    with progress("Checking", len(written)) as told:
        for done, one in enumerate(written, 1):
            try:
                packed, pack = packing.packed(one)
            except InvalidInput as refused:
                errors += [error for error in refused.errors if error not in errors]  # of several jobs of one file
                continue
            try:
                steps.append(Step(packed, client.plan(packed.document), pack=pack))
            except InvalidInput as refused:
                errors += [(one.at(path), text) for path, text in refused.errors]
            except (Conflict, NotFound) as refused:
                errors.append((one.source, refused.message))
            told(done)
    return steps


class Packing:
    """Packs what documents need; for which target, is asked when something needs wheels."""

    def __init__(self, target: Callable[[], Mapping[str, Any]]) -> None:
        self._target = target
        self._packer: Packer | None = None

    def packed(self, one: Written) -> tuple[Written, Pack | None]:
        from sweephand.cli.packing import Packer, has_packed, with_code  # late: most files need none of it

        needs = one.needs
        if needs is None or not has_packed(one.document, needs):
            return one, None
        if self._packer is None:
            self._packer = Packer(self._target)
        pack: Pack = self._packer.pack(needs)
        return replace(one, document=with_code(one.document, needs, pack)), pack


def distinct(written: list[Written], errors: Errors) -> list[Written]:
    """The documents without those whose job another one names too: which of them is meant, nobody knows."""
    found: dict[str, list[Written]] = {}
    for n, one in enumerate(written):
        found.setdefault(str(one.document["name"]) if "name" in one.document else f"#{n}", []).append(one)
    for name, (first, *others) in found.items():
        errors += [(other.at("name"), f"The job {name!r} is in {first.source} too.") for other in others]
    return [one for ones in found.values() for one in ones if len(ones) == 1]


def _to_delete(client: Client, labels: tuple[str, ...], kept: set[str]) -> list[Step]:
    """The jobs with all of the labels that no file has."""
    steps = []
    for job in client.jobs(tag=labels[0]):
        if job["jobId"] not in kept and set(labels) <= set(job.get("tags") or ()):
            gone = {"action": "delete", "version": job["version"], "changes": []}
            steps.append(Step(Written("", {"name": job["jobId"]}), {"difference": gone}))
    return steps


def _carried_out(client: Client, steps: list[Step], errors: Errors) -> list[Step]:
    """What came of each step. One job's conflict does not stop the others; a server that refuses stops all."""
    done: list[Step] = []
    stored: set[str] = set()
    is_over = False
    with progress("Applying", len(steps)) as told:
        for step in steps:
            outcome = "not tried"
            try:
                outcome = outcome if is_over else _carry_out(client, step, stored)
            except SweephandError as error:
                outcome = "failed"
                is_over = not isinstance(error, Conflict | InvalidInput | NotFound)
                where = f"{step.written.source}: {step.name}" if step.written.source else step.name
                errors.append((where, error.message))
            done.append(replace(step, outcome=outcome))
            told(len(done))
    return done


def _carry_out(client: Client, step: Step, stored: set[str]) -> str:
    if step.action == "none":
        return "unchanged"
    if step.action == "delete":
        client.delete(step.name, version=step.version)
        return "applied"
    if step.pack is not None and step.pack.digest not in stored:
        client.code.put(step.pack.content)
        stored.add(step.pack.digest)
    # Based on the version that the plan was shown for: somebody's edit in between is a Conflict, not overwritten.
    client.put(step.written.document, version=step.version)
    return "applied"


def _tell_all(output: Output, steps: list[Step]) -> int:
    """Say the plan; how many changes it has."""
    for step in steps:
        _tell(output, step)
    counts = Counter(step.action for step in steps)
    summary = ", ".join(f"{counts[action]} {word}" for action, word in _WORDS.items() if counts[action])
    output.say(f"Plan: {summary or 'nothing'}.")
    return len(steps) - counts["none"]


def _tell(output: Output, step: Step) -> None:
    sign, style = _SIGNS[step.action]
    version = f" (version {step.version})" if step.action in ("change", "delete") else ""
    source = visible(step.written.source) if step.written.source else "which no file has any more"
    output.say(f"{sign} {visible(step.name)}: {_WORDS[step.action]}{version}, {source}", style)
    if step.action in ("none", "delete"):
        return
    for line in step.plan["difference"].get("summary") or ():
        output.say(f"    {visible(line)}", style)
    output.say(f"    {in_words(step.plan)}")
    if cost := step.plan.get("costPerMonth"):
        output.say(f"    About ${cost['dollars']:.2f} a month on AWS.")
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
