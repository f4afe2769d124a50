"""The process that calls a user's function: `python runner.py CALL`. The standard library is all it needs.

It exits with 0 and an output, with 1 and a failure, each in the file that the call names, or as the function exits.
"""

from __future__ import annotations

import importlib
import json
import sys
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

MESSAGE_CHARS_MAX: Final = 1_000


class Permanent(Exception):
    """The same call would fail again."""


def main() -> None:
    """Do what the call says."""
    call = json.loads(Path(sys.argv[1]).read_text())
    output = Path(call["output"])
    sys.argv = [call["function"]]
    sys.path[:0] = [*filter(None, [call.get("code")]), str(Path.cwd())]
    # Last: what a file of jobs imports of ours is there also where nothing is installed, as in a Lambda layer.
    sys.path.append(str(Path(__file__).parents[2]))
    try:
        returned = _function(call["function"])(*call["args"], **call["kwargs"])
        if returned is not None or not output.exists():
            output.write_text(_as_json(returned))
    except SystemExit:
        raise  # its own way to end: 0, the code that skips, or any other
    except BaseException as error:  # noqa: BLE001 - whatever it raises is its failure
        traceback.print_exc()
        Path(call["failure"]).write_text(json.dumps(_failure(error)))
        sys.exit(1)


def _function(name: str) -> Callable[..., Any]:
    module, colon, path = name.partition(":")
    if not (module and colon and path):
        raise _named("InvalidInput", f"'{name}' is no function: write it as module:function.")
    try:
        found: Any = importlib.import_module(module)
    except ImportError as error:
        raise _named(type(error).__name__, str(error)) from error
    for attribute in path.split("."):
        found = getattr(found, attribute, None)
    if not callable(found):
        raise _named("NotFound", f"Module '{module}' has no function '{path}'.")
    function: Callable[..., Any] = found
    return function


def _as_json(returned: Any) -> str:
    try:
        return json.dumps(returned, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        message = f"The function returned a {type(returned).__name__} that JSON cannot hold: {error}."
        raise _named("InvalidOutput", message) from error


def _named(error: str, message: str) -> Permanent:
    kind: type[Permanent] = type(error, (Permanent,), {})
    return kind(message)


def _failure(error: BaseException) -> Mapping[str, Any]:
    """Its name and words, and whether it says, by the name of a class, that another try is no use."""
    kinds = [kind.__name__ for kind in type(error).__mro__]
    message = str(error)[:MESSAGE_CHARS_MAX].encode(errors="replace").decode()
    return {"error": kinds[0], "message": message, "permanent": Permanent.__name__ in kinds}


if __name__ == "__main__":
    main()
