"""Commands about secrets: a value is written, and shown to nobody again."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import IO

import click

from sweephand.cli.program import program
from sweephand.cli.session import Session, pass_session
from sweephand.cli.show import at, field, visible
from sweephand.domain.secret import VALUE_BYTES_MAX, check_value
from sweephand.errors import InvalidInput


@program.group()
def secret() -> None:
    """Values that tasks get and nobody sees."""


@secret.command("set", example="sweephand secret set warehouse-dsn < dsn.txt")
@click.argument("name")
@click.option("--from-env", "variable", metavar="VAR", help="Take the value of an environment variable.")
@click.option("--from-file", "file", type=click.Path(path_type=Path), help="Take a file's text, as it is.")
@pass_session
def secret_set(session: Session, name: str, variable: str | None, file: Path | None) -> None:
    """Store a secret, or a new value of it.

    The value comes from a prompt, or from standard input, where a line's end at its end is left out. It is never an
    argument: those are seen by everybody on the machine, and remembered by the shell.
    """
    value = _value(variable, file)
    check_value(value)
    answer = session.client.secrets.put(name, {"value": value})
    session.output.answer(answer, f"The secret {visible(name)} is stored: version {answer['version']}.")


@secret.command("list", example="sweephand secret list")
@pass_session
def secret_list(session: Session) -> None:
    """List the secrets, without their values."""
    columns = (field("id"), field("version"), at("updatedAt", "UPDATED"), field("updatedBy", "BY"))
    session.output.rows(session.client.secrets.list(), columns, none="There are no secrets.")


@secret.command("delete", example="sweephand secret delete warehouse-dsn")
@click.argument("name")
@pass_session
def secret_delete(session: Session, name: str) -> None:
    """Delete a secret: tasks that declare it fail from now on."""
    session.client.secrets.delete(name)
    session.output.answer({"id": name}, f"The secret {visible(name)} is deleted.")


def _value(variable: str | None, file: Path | None) -> str:
    if variable is not None and file is not None:
        raise InvalidInput("--from-env and --from-file exclude each other: give one of them.", "value")
    if variable is not None:
        found = os.environ.get(variable)
        if found is None:
            raise InvalidInput(f"There is no environment variable {visible(variable)}.", "--from-env")
        return found
    if file is not None:
        try:
            with file.open("rb") as opened:
                return _text(opened, "--from-file")
        except OSError as error:
            raise InvalidInput(f"{visible(str(file))} cannot be read: {error.strerror}.", "--from-file") from None
    if sys.stdin.isatty():
        return str(click.prompt("Value", hide_input=True, err=True))
    text = _text(sys.stdin.buffer, "value")
    return text.removesuffix("\n").removesuffix("\r")


def _text(stream: IO[bytes], path: str) -> str:
    """The stream's text; of one that is too long, enough to see that."""
    try:
        return stream.read(VALUE_BYTES_MAX + 3).decode()
    except UnicodeDecodeError:
        raise InvalidInput("The value is not UTF-8 text: encode it, for example as base64.", path) from None
