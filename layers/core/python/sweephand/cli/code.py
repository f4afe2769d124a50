"""Commands about the code of `python` tasks, which `apply` packs and stores by itself."""

from __future__ import annotations

from pathlib import Path

import click

from sweephand.cli.program import program
from sweephand.cli.session import Session, pass_session
from sweephand.cli.show import visible
from sweephand.errors import InvalidInput
from sweephand.packs import PACK_BYTES_MAX


@program.group()
def code() -> None:
    """Packs of code that tasks are imported from."""


@code.command("put", example="sweephand code put sales.zip")
@click.argument("file", type=click.Path(path_type=Path))
@pass_session
def code_put(session: Session, file: Path) -> None:
    """Store a zip of modules, and say its name: what `code` of a `python` step is."""
    try:
        with file.open("rb") as opened:
            content = opened.read(PACK_BYTES_MAX + 1)
    except OSError as error:
        raise InvalidInput(f"{visible(str(file))} cannot be read: {error.strerror}.", "file") from None
    if len(content) > PACK_BYTES_MAX:
        raise InvalidInput(f"{visible(str(file))} has more than {PACK_BYTES_MAX:,} bytes.", "file")
    answer = session.client.code.put(content)
    session.output.answer(answer, f"{answer['sha256']}")


@code.command("get", example="sweephand code get 4f2c…")
@click.argument("sha256")
@pass_session
def code_get(session: Session, sha256: str) -> None:
    """Say whether a pack is there, and how large it is."""
    answer = session.client.code.get(sha256)
    session.output.answer(answer, f"The code {visible(sha256)} has {answer['size']:,} bytes.")


@code.command("target", example="sweephand code target")
@pass_session
def code_target(session: Session) -> None:
    """Say which Python runs the code of tasks, and which wheels it takes."""
    answer = session.client.code.target()
    wheels = ", ".join(answer["wheels"]) or "those of this machine"
    session.output.answer(answer, f"Python {answer['python']}; wheels: {wheels}.")
