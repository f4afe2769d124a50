"""Answers about what jobs refer to: shared objects, code, datasets."""

from __future__ import annotations

from sweephand.api.answers.told import Told
from sweephand.api.schemas import Moment
from sweephand.domain.occasions import Quantity


class Document(Told):
    id: str
    version: int


class Secret(Document):
    updated_at: Moment
    updated_by: str


class CodeTarget(Told):
    python: str
    wheels: list[str]
    max_bytes: int
    inline_bytes: int


class Code(Told):
    sha256: str
    size: int


class CodeUpload(Told):
    sha256: str
    url: str | None
    headers: dict[str, str]


class Published(Told):
    runs: list[dict[str, str]]


class Updated(Published):
    id: str


class Publisher(Told):
    job_id: str
    task_id: str | None


class Subscriber(Told):
    job_id: str
    quantity: Quantity


class Dataset(Told):
    id: str
    publishers: list[Publisher]
    subscribers: list[Subscriber]
    updated_at: Moment | None
    update_id: str | None
