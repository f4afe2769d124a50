"""Answers about who may do what, and where."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from sweephand.api.answers.told import Told
from sweephand.api.schemas import Moment
from sweephand.domain.access import Role


class Switched(Told):
    changed: int
    next_cursor: str | None


class NamespaceInfo(Told):
    namespace: str
    version: int
    description: str
    limits: dict[str, int]
    weight: int


class Member(Told):
    member: str
    role: Role


class TokenInfo(Told):
    id: str
    name: str
    namespace: str
    role: Role
    created_at: Moment
    created_by: str
    expires_at: Moment | None


class NewToken(TokenInfo):
    token: str


class Myself(Told):
    caller: str
    kind: Literal["person", "token"]
    role: Role
    namespace: str
    namespaces: list[str] = Field(description="Those that X-Namespace may name.")
    more_namespaces: bool
    platform: bool = Field(description="Whether every namespace is open to the caller.")
    expires_at: Moment | None


class Session(Told):
    token: str
    expires_at: Moment
