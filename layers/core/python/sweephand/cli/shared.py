"""Commands about what jobs share: calendars, pools and templates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from sweephand.cli.documents import read_one, shown_yaml
from sweephand.cli.program import program
from sweephand.cli.session import Group, Session, Verb, pass_session
from sweephand.cli.show import field, visible

if TYPE_CHECKING:
    from sweephand.client.resources import Shared

_KINDS: Final = {
    "calendar": ("calendars", "business-days", "Days on which jobs run, or do not."),
    "pool": ("pools", "warehouse", "Slots that runs of several jobs share."),
    "template": ("templates", "nightly", "Fields that several jobs take over."),
}
_ABOUT: Final = frozenset({"id", "version"})
"""What the server says about an object beside its document."""


def _objects(session: Session, kind: str) -> Shared:
    shared: Shared = getattr(session.client, _KINDS[kind][0])
    return shared


def _commands(kind: str) -> Group:
    """put, get, list and delete of one kind."""
    plural, sample, about = _KINDS[kind]

    @click.command("put", cls=Verb, example=f"sweephand {kind} put {sample} -f {sample}.yaml")
    @click.argument("id_", metavar="ID")
    @click.option("-f", "--file", "name", required=True, metavar="FILE", help="YAML or JSON, or -.")
    @pass_session
    def put(session: Session, id_: str, name: str) -> None:
        answer = _objects(session, kind).put(id_, read_one(name))
        session.output.answer(answer, f"The {kind} {visible(id_)} is stored.")

    @click.command("get", cls=Verb, example=f"sweephand {kind} get {sample}")
    @click.argument("id_", metavar="ID")
    @pass_session
    def get(session: Session, id_: str) -> None:
        answer = _objects(session, kind).get(id_)
        document = {name: value for name, value in answer.items() if name not in _ABOUT}
        session.output.answer(answer, shown_yaml(document))

    @click.command("list", cls=Verb, example=f"sweephand {kind} list")
    @pass_session
    def list_(session: Session) -> None:
        session.output.rows(
            _objects(session, kind).list(), (field("id"), field("version")), none=f"There are no {plural}."
        )

    @click.command("delete", cls=Verb, example=f"sweephand {kind} delete {sample}")
    @click.argument("id_", metavar="ID")
    @pass_session
    def delete(session: Session, id_: str) -> None:
        _objects(session, kind).delete(id_)
        session.output.answer({"id": id_}, f"The {kind} {visible(id_)} is deleted.")

    put.help = f"Create or replace a {kind}."
    get.help = f"Show a {kind} as a file that `put -f` takes; with --json, its id and version too."
    list_.help = f"List the {plural}."
    delete.help = f"Delete a {kind} that no job needs."
    return Group(kind, help=about, commands=[put, get, list_, delete])


for _kind in _KINDS:
    program.add_command(_commands(_kind))
