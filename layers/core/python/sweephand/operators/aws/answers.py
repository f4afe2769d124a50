"""What a call brought, as an output that can be kept: plain JSON, of a bounded size."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, Final, Protocol, runtime_checkable

from sweephand.calls import Succeeded
from sweephand.domain.fields import json_bytes
from sweephand.domain.limits import OUTPUT_BYTES_MAX
from sweephand.domain.plain import plain
from sweephand.errors import InvalidInput
from sweephand.operators.aws.failures import Failed, permanent

_WEIGHT: Final = 8
"""A document has more weight than its text while it is copied; what is too long is refused afterwards."""


@runtime_checkable
class _Stream(Protocol):
    def read(self, amt: int, /) -> bytes: ...


def kept(output: Any) -> Succeeded:
    """The output of a task; one that cannot be kept is its failure."""
    try:
        copied, errors = plain({"output": _simple(output)}, bytes_max=_WEIGHT * OUTPUT_BYTES_MAX)
    except InvalidInput as refused:
        raise too_large() if "bytes" in refused.message else _invalid(refused.message) from refused
    if errors:
        raise _invalid(errors[0][1])
    if json_bytes(copied["output"]) > OUTPUT_BYTES_MAX:
        raise too_large()
    return Succeeded(copied["output"])


def too_large() -> Failed:
    """The call was made, and what it answered does not fit into a run."""
    return Failed(permanent("OutputTooLarge", f"It was done, and its answer takes more than {OUTPUT_BYTES_MAX} bytes."))


def _invalid(message: str) -> Failed:
    return Failed(permanent("InvalidOutput", f"It was done, and its answer cannot be kept. {message}"))


def _simple(value: Any) -> Any:
    """Without what JSON has no word for: bytes become text, as they are or in base 64, and a stream is read."""
    if isinstance(value, bytes | bytearray):
        return _text(bytes(value))
    if isinstance(value, Mapping):
        return {key: _simple(one) for key, one in value.items()}
    if isinstance(value, list | tuple | set):
        return [_simple(one) for one in value]
    if isinstance(value, _Stream):
        content = value.read(OUTPUT_BYTES_MAX + 1)
        if len(content) > OUTPUT_BYTES_MAX:
            raise too_large()
        return _text(content)
    return value


def _text(content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        return base64.b64encode(content).decode()
