"""Run a task of users' code once: here are no rights to anything of ours."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, Final

from sweephand.operators import Operators
from sweephand.orders import decode_call, encode_outcome

operators: Final = Operators(Path(tempfile.gettempdir()) / "sweephand")


def handler(event: dict[str, Any], _context: object) -> dict[str, Any]:
    return encode_outcome(operators.execute(decode_call(event)))
