"""What every command shares: the connection, the output, the options, and how a failure looks."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import click
from click.shell_completion import CompletionItem

from sweephand.cli.show import Output, visible
from sweephand.clock import SystemClock
from sweephand.domain.duration import parse_duration
from sweephand.errors import InvalidInput, SweephandError

if TYPE_CHECKING:
    from sweephand.client import Client

__all__ = ["Group", "Session", "Verb", "agreed", "job_argument", "job_names", "moment", "pass_session", "report"]

NAMESPACE_DEFAULT: Final = "default"

_COMPLETIONS_MAX: Final = 100
_COMPLETION_TIMEOUT: Final = timedelta(seconds=2)


class Session:
    """One call of the program."""

    def __init__(self, url: str | None = None, namespace: str | None = None) -> None:
        self.as_json = False
        self.url = url
        """The server that this call names; None where it names none."""
        self.wanted_namespace = namespace
        self._client: Client | None = None
        self._namespace: str | None = None

    @property
    def client(self) -> Client:
        """The connection, opened when it is first needed: `--help` reads no token."""
        if self._client is None:
            # Imported late: httpx takes longer than everything else here.
            from sweephand.client import Client

            self._client = Client(self.url, namespace=self.wanted_namespace)
        return self._client

    @property
    def output(self) -> Output:
        """Where answers go."""
        return Output(sys.stdout, as_json=self.as_json, is_terminal=sys.stdout.isatty())

    @property
    def namespace(self) -> str:
        """The namespace that the server takes for this call: without a name, that is the token's own."""
        if self._namespace is None:
            self._namespace = self.client.namespace or _own_namespace(self.client)
        return self._namespace

    def close(self) -> None:
        """Give the connections back."""
        if self._client is not None:
            self._client.close()


def _own_namespace(client: Client) -> str:
    """A token of one namespace sees only that one; where several are seen, the server takes the default one."""
    seen = [str(one["namespace"]) for one in islice(client.namespaces.list(), 2)]
    return seen[0] if len(seen) == 1 else NAMESPACE_DEFAULT


pass_session = click.make_pass_decorator(Session, ensure=True)


def _wants_json(context: click.Context, _option: click.Parameter, value: bool) -> bool:
    if value:
        context.ensure_object(Session).as_json = True
    return value


class Verb(click.Command):
    """A command with an example in its help, and `--json` where it has an answer."""

    def __init__(self, *args: Any, example: str, answers: bool = True, **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self.example = example
        self.epilog = f"\b\nExample:\n  {example}"
        option = click.Option(
            ["--json"], is_flag=True, expose_value=False, callback=_wants_json, help="One JSON document, for programs."
        )
        if answers:
            self.params.append(option)


class Group(click.Group):
    """Commands about one thing."""

    command_class = Verb
    group_class = type


def report(error: SweephandError) -> None:
    """One line on standard error, and one more for each field that is wrong."""
    fields = error.errors if isinstance(error, InvalidInput) else ()
    if len(fields) == 1 and fields[0][1] == error.message:
        where = f"{fields[0][0]}: " if fields[0][0] else ""
        click.echo(f"Error: {visible(where + error.message)}", err=True)
        return
    click.echo(f"Error: {visible(error.message)}", err=True)
    for path, message in fields:
        click.echo(f"  {visible(f'{path}: {message}' if path else message)}", err=True)


def agreed(question: str, *, yes: bool) -> None:
    """Ask somebody at a terminal; a program has decided already."""
    asks = not yes and sys.stdin.isatty() and sys.stderr.isatty()
    if asks and not click.confirm(question, err=True):
        click.echo("Nothing was changed.", err=True)
        raise click.exceptions.Exit(1)


def moment(text: str | None, *, path: str) -> datetime | None:
    """A time: RFC 3339, or how long ago, such as 2h."""
    if text is None:
        return None
    try:
        return SystemClock().now() - parse_duration(text, path=path)
    except InvalidInput:
        pass  # safe: it may be a time
    try:
        read = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidInput(f"{text!r} is neither a time nor a duration such as 2h.", path) from None
    # A time without an offset is local, as the times that are shown.
    return read.astimezone(UTC)


def job_names(context: click.Context, _parameter: click.Parameter, incomplete: str) -> Iterable[CompletionItem[Any]]:
    """Names of jobs, for the shell; none where the server does not answer soon."""
    from sweephand.client import Client

    root = context.find_root().params
    try:
        client = Client(root.get("url"), namespace=root.get("namespace"), timeout=_COMPLETION_TIMEOUT, tries_max=1)
        with client:
            jobs = zip(range(_COMPLETIONS_MAX), client.jobs(prefix=incomplete or None), strict=False)
            return [CompletionItem(job["jobId"]) for _, job in jobs]
    except SweephandError:
        return []  # safe: a shell that completes nothing is better than one that shows an error


def job_argument(command: Callable[..., Any]) -> Callable[..., Any]:
    """The argument JOB."""
    return click.argument("job", shell_complete=job_names)(command)
