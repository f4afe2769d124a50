"""Where an agent's work happens: it begins with the checkpoint that the last attempt left to the API."""

from __future__ import annotations

import base64
import binascii
import json
from pathlib import Path
from typing import Any, Final

from sweephand.calls import Call, Files
from sweephand.operators.place import Place

CHECKPOINT_BYTES_MAX: Final = 24_000
"""As much of a file as the API keeps, however it is written in JSON."""
_TEXT: Final = "text"
_BYTES: Final = "base64"
_FOR_EVERYBODY: Final = 0o777


def document_of(content: bytes) -> dict[str, str]:
    """A checkpoint's file as JSON."""
    try:
        return {_TEXT: content.decode()}
    except UnicodeDecodeError:
        return {_BYTES: base64.b64encode(content).decode()}


def content_of(document: Any) -> bytes | None:
    """The file that a document was made of; what somebody else left is its JSON."""
    if document is None:
        return None
    if isinstance(document, dict) and len(document) == 1:
        ((kind, told),) = document.items()
        if kind == _TEXT and isinstance(told, str):
            return told.encode()
        if kind == _BYTES and isinstance(told, str):
            try:
                return base64.b64decode(told, validate=True)
            except binascii.Error:
                pass  # it is somebody else's after all
    return json.dumps(document).encode()


class Resumed(Place):
    """A folder of the attempt's own, which begins with what was left."""

    __slots__ = ("_left",)

    def __init__(self, folder: Path, call: Call, left: bytes | None) -> None:
        super().__init__(folder, call)
        self._left = left

    def make(self) -> None:
        super().make()
        self.restore()

    def restore(self) -> None:
        if self._left is not None:
            self.checkpoint.write_bytes(self._left)


class Shared(Resumed):
    """A volume that a container of somebody else's sees too. It is this attempt's, and goes with its task."""

    __slots__ = ()

    def __init__(self, folder: Path, call: Call, left: bytes | None) -> None:
        super().__init__(folder, call, left)
        self.root = folder
        self.files = Files(folder)

    def make(self) -> None:
        """Its user is the image's own: whoever that is may write here."""
        for folder in (self.root, self.work, self.tmp, self.artifacts):
            folder.mkdir(exist_ok=True, parents=True)
            folder.chmod(_FOR_EVERYBODY)
        self.restore()
        if self.checkpoint.exists():
            self.checkpoint.chmod(0o666)

    def clear(self, *, keep_checkpoint: bool) -> None:
        """Nothing outlives the task."""

    @property
    def ready(self) -> Path:
        """The mark for which the other container waits."""
        return self.root / "ready"
