"""Commands about who may do what: tokens, namespaces, members, and the record of what was done."""

from __future__ import annotations

import sys
from datetime import datetime
from itertools import islice, takewhile
from typing import Final

import click

from sweephand.cli.documents import read_one
from sweephand.cli.jobs import CATCHUPS, tell_pages
from sweephand.cli.program import program
from sweephand.cli.session import Session, agreed, moment, pass_session
from sweephand.cli.show import at, field, visible
from sweephand.clock import SystemClock
from sweephand.domain.duration import parse_duration
from sweephand.errors import Conflict, InvalidInput

ROLES: Final = ("viewer", "operator", "editor", "admin")
TOKEN_CHARS_MAX: Final = 16_384

_role = click.Choice(ROLES)


@program.command(example="sweephand login < token.txt")
@pass_session
def login(session: Session) -> None:
    """Store a token, which is read from a prompt or standard input, for this user.

    It is checked against the server first, and never an argument: those are seen by everybody on the machine.
    """
    from sweephand.client import Client, Connection

    if sys.stdin.isatty():
        token = str(click.prompt("Token", hide_input=True, err=True))
    else:
        token = sys.stdin.readline(TOKEN_CHARS_MAX)
    connection = Connection.of(session.url, token.strip() or None, session.wanted_namespace)
    if not token.strip():
        raise InvalidInput("There is no token: paste it at the prompt, or give it on standard input.", "token")
    with Client(connection.url, connection.token, connection.namespace) as client:
        next(client.jobs(), None)
    path = connection.save()
    answer = {"url": connection.url, "namespace": connection.namespace, "file": str(path)}
    session.output.answer(answer, f"{connection.url} knows you; the token is in {path}.")


@program.command(example="sweephand whoami")
@pass_session
def whoami(session: Session) -> None:
    """Show who the token belongs to, and what it may do."""
    columns = (
        field("caller"),
        field("kind"),
        field("role"),
        field("namespace"),
        field("namespaces"),
        at("expiresAt", "EXPIRES"),
    )
    session.output.record(session.client.whoami(), columns)


@program.group()
def token() -> None:
    """Access for programs."""


@token.command("create", example="sweephand token create ci --role editor --expires 90d")
@click.argument("name")
@click.option("--role", type=_role, required=True, help="What it may do.")
@click.option("--expires", help="After which it ends, such as 90d.")
@pass_session
def token_create(session: Session, name: str, role: str, expires: str | None) -> None:
    """Create a token for the namespace; its text is shown this once."""
    expires_at = SystemClock().now() + parse_duration(expires, path="expires") if expires is not None else None
    answer = session.client.tokens.create(name, role=role, expires_at=expires_at)
    if not session.as_json:
        click.echo(f"Token {visible(str(answer['id']))}, shown this once:", err=True)
    session.output.answer(answer, visible(str(answer["token"])))


@token.command("list", example="sweephand token list")
@pass_session
def token_list(session: Session) -> None:
    """List the tokens, without their texts."""
    columns = (
        field("id"),
        field("name"),
        field("role"),
        field("namespace"),
        at("createdAt", "CREATED"),
        field("createdBy", "BY"),
        at("expiresAt", "EXPIRES"),
    )
    session.output.rows(session.client.tokens.list(), columns, none="There are no tokens.")


@token.command("revoke", example="sweephand token revoke 3f2a9c0011223344")
@click.argument("id_", metavar="ID")
@pass_session
def token_revoke(session: Session, id_: str) -> None:
    """Make a token open nothing any more."""
    session.client.tokens.revoke(id_)
    session.output.answer({"id": id_}, f"The token {visible(id_)} is revoked.")


@program.group()
def namespace() -> None:
    """Separate sets of jobs, each with its own people."""


@namespace.command("list", example="sweephand namespace list")
@pass_session
def namespace_list(session: Session) -> None:
    """List the namespaces."""
    columns = (field("namespace"), field("description"), field("limits"))
    session.output.rows(session.client.namespaces.list(), columns, none="There are no namespaces.")


@namespace.command("put", example="sweephand namespace put team-a")
@click.argument("name")
@click.option("-f", "--file", "file", metavar="FILE", help="All its settings: YAML or JSON, or -.")
@pass_session
def namespace_put(session: Session, name: str, file: str | None) -> None:
    """Create a namespace; with -f, also replace the settings of one that is there."""
    if file is not None:
        answer = session.client.namespaces.put(name, read_one(file))
        session.output.answer(answer, f"The namespace {visible(name)} is stored.")
        return
    try:
        answer = session.client.namespaces.create(name)
    except Conflict:
        if not any(one["namespace"] == name for one in session.client.namespaces.list()):
            raise
        raise Conflict(f"The namespace {name} is there already and stays as it is: -f FILE changes it.") from None
    session.output.answer(answer, f"The namespace {visible(name)} is created.")


@namespace.command("delete", example="sweephand namespace delete team-a --yes")
@click.argument("name")
@click.option("-y", "--yes", is_flag=True, help="Ask no question.")
@pass_session
def namespace_delete(session: Session, name: str, yes: bool) -> None:
    """Delete a namespace without jobs, with its members and tokens; its name is not free again."""
    agreed(f"Delete the namespace {visible(name)} with its members and tokens?", yes=yes)
    session.client.namespaces.delete(name)
    session.output.answer({"namespace": name}, f"The namespace {visible(name)} is deleted.")


@namespace.command("pause", example="sweephand namespace pause team-a --yes")
@click.argument("name")
@click.option("-y", "--yes", is_flag=True, help="Ask no question.")
@pass_session
def namespace_pause(session: Session, name: str, yes: bool) -> None:
    """Pause everything in a namespace."""
    agreed(f"Pause every job of {visible(name)}?", yes=yes)
    tell_pages(session, session.client.namespaces.pause(name), "Paused")


@namespace.command("resume", example="sweephand namespace resume team-a --catchup latest")
@click.argument("name")
@click.option("--catchup", type=click.Choice(CATCHUPS), default="none", help="What of the pause is made up for.")
@pass_session
def namespace_resume(session: Session, name: str, catchup: str) -> None:
    """Resume what the pause of a namespace stopped."""
    tell_pages(session, session.client.namespaces.resume(name, catchup=catchup), "Resumed")


@program.group()
def member() -> None:
    """Who has which role in a namespace."""


@member.command("list", example="sweephand -n team-a member list")
@pass_session
def member_list(session: Session) -> None:
    """List the members of the namespace."""
    columns = (field("member"), field("role"))
    session.output.rows(session.client.members.list(session.namespace), columns, none="There are no members.")


@member.command("put", example="sweephand -n team-a member put ada@example.com --role operator")
@click.argument("who", metavar="MEMBER")
@click.option("--role", type=_role, required=True, help="What they may do.")
@pass_session
def member_put(session: Session, who: str, role: str) -> None:
    """Give somebody a role in the namespace."""
    answer = session.client.members.put(session.namespace, who, role)
    session.output.answer(answer, f"{visible(who)} is {role} of {visible(session.namespace)}.")


@member.command("remove", example="sweephand -n team-a member remove ada@example.com")
@click.argument("who", metavar="MEMBER")
@pass_session
def member_remove(session: Session, who: str) -> None:
    """Take somebody's role in the namespace away."""
    session.client.members.remove(session.namespace, who)
    session.output.answer({"member": who}, f"{visible(who)} has no role in {visible(session.namespace)} any more.")


@program.command(example="sweephand audit --since 1d")
@click.option("--since", help="How long back, such as 1d, or a time.")
@click.option("--limit", type=click.IntRange(1), default=100, show_default=True, help="The most to show.")
@pass_session
def audit(session: Session, since: str | None, limit: int) -> None:
    """Show who did what, the newest first."""
    start = moment(since, path="since")
    entries = session.client.audit()
    if start is not None:
        entries = takewhile(lambda deed: datetime.fromisoformat(deed["at"]) >= start, entries)
    columns = (at("at", "AT"), field("actor"), field("action"), field("subject"), field("note"))
    session.output.rows(islice(entries, limit), columns, none="Nothing is on record.")
