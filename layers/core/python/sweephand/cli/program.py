"""The program `sweephand`: its commands, and how it ends.

Exit codes: 0 done, 1 failed, 2 `apply --dry-run` would change something, 64 not understood, 130 interrupted.
"""

from __future__ import annotations

import os
import sys
from typing import Any, Final

import click

from sweephand import __version__
from sweephand.cli.session import Group, Session, report
from sweephand.errors import SweephandError

__all__ = ["Program", "program"]

FAILED: Final = 1
NOT_UNDERSTOOD: Final = 64
INTERRUPTED: Final = 130


class Program(Group):
    """The root of all commands."""

    def main(self, *args: Any, **extra: Any) -> Any:
        """Run, and leave with the exit code."""
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):
                # A terminal that cannot show a character shows its number.
                stream.reconfigure(errors="backslashreplace")
        try:
            code = super().main(*args, **{**extra, "prog_name": "sweephand", "standalone_mode": False})
            sys.stdout.flush()
        except click.UsageError as error:
            error.show()
            code = NOT_UNDERSTOOD
        except click.ClickException as error:
            error.show()
            code = FAILED
        except SweephandError as error:
            report(error)
            code = FAILED
        except (click.Abort, KeyboardInterrupt):
            code = INTERRUPTED
        except BrokenPipeError:
            # The reader has seen enough; the interpreter's own flush at the end must not complain either.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            code = FAILED
        sys.exit(code if isinstance(code, int) else 0)


def _version(context: click.Context, _option: click.Parameter, value: bool) -> None:
    if value and not context.resilient_parsing:
        click.echo(f"sweephand {__version__}")
        context.exit()


@click.group(cls=Program, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option("--url", help="The server; else SWEEPHAND_URL, or where `sweephand login` was.")
@click.option("-n", "--namespace", help="The namespace; else SWEEPHAND_NAMESPACE.")
@click.option("--version", is_flag=True, expose_value=False, is_eager=True, callback=_version, help="Say the version.")
@click.pass_context
def program(context: click.Context, url: str | None, namespace: str | None) -> None:
    """A cron and DAG scheduler that accounts for every fire time."""
    context.obj = Session(url, namespace)
    context.call_on_close(context.obj.close)
