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
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE...")
@pass_session
def code_put(session: Session, files: tuple[Path, ...]) -> None:
    """Store zips of modules, and say their names: what `code` of a `python` step is."""
    answers = []
    for content in [_read(file) for file in files]:
        answers.append(session.client.code.put(content))
        session.output.say(f"{answers[-1]['sha256']}")
    if session.as_json:
        session.output.json(answers if len(files) > 1 else answers[0])


def _read(file: Path) -> bytes:
    try:
        with file.open("rb") as opened:
            content = opened.read(PACK_BYTES_MAX + 1)
    except OSError as error:
        raise InvalidInput(f"{visible(str(file))} cannot be read: {error.strerror}.", "file") from None
    if len(content) > PACK_BYTES_MAX:
        raise InvalidInput(f"{visible(str(file))} has more than {PACK_BYTES_MAX:,} bytes.", "file")
    return content


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
