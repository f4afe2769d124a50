"""The calls about shared objects, namespaces, tokens and leases, each under its own name on the client."""

from __future__ import annotations

import base64
import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from sweephand.client.transport import Document, Transport, moment, segments
from sweephand.errors import NotFound
from sweephand.packs import INLINE_BYTES_MAX

__all__ = ["Code", "Leases", "Members", "Namespaces", "Shared", "Tokens"]


_PATIENCE_S: Final = 120.0
"""How much longer a large body may take."""


class Shared:
    """Calendars, pools, templates or secrets: objects that jobs refer to by their id."""

    def __init__(self, http: Transport, kind: str) -> None:
        self._http = http
        self._kind = kind

    def put(self, id_: str, document: Mapping[str, Any]) -> Document:
        """Create or replace one."""
        answer: Document = self._http.send("PUT", segments(self._kind, id_), body=dict(document))
        return answer

    def get(self, id_: str) -> Document:
        """One of them."""
        answer: Document = self._http.send("GET", segments(self._kind, id_))
        return answer

    def list(self) -> Iterator[Document]:
        """All of them."""
        return self._http.pages(segments(self._kind))

    def delete(self, id_: str) -> None:
        """Remove one that no job needs."""
        self._http.send("DELETE", segments(self._kind, id_))


class Namespaces(Shared):
    """Separate sets of jobs, each with its own people and limits."""

    def __init__(self, http: Transport) -> None:
        super().__init__(http, "namespaces")

    def create(self, namespace: str, document: Mapping[str, Any] | None = None) -> Document:
        """A new one; a Conflict where it is there already, which then stays as it is."""
        path, condition = segments(self._kind, namespace), {"If-None-Match": "*"}
        answer: Document = self._http.send("PUT", path, body=dict(document or {}), headers=condition)
        return answer

    def pause(self, namespace: str) -> Iterator[Document]:
        """Stop everything in it, one page of jobs at a time: read the iterator to its end."""
        return self._each_page(namespace, "pause")

    def resume(self, namespace: str, *, catchup: str = "none") -> Iterator[Document]:
        """Start everything in it again, one page of jobs at a time: read the iterator to its end."""
        return self._each_page(namespace, "resume", catchup=catchup)

    def _each_page(self, namespace: str, action: str, **body: str) -> Iterator[Document]:
        while True:
            page = self._http.send("POST", segments(self._kind, namespace, action), body=body)
            yield page
            if not page.get("nextCursor"):
                return
            body = {**body, "cursor": page["nextCursor"]}


class Members:
    """Who may do what in a namespace."""

    def __init__(self, http: Transport) -> None:
        self._http = http

    def list(self, namespace: str) -> Iterator[Document]:
        """Everybody in it."""
        return self._http.pages(segments("namespaces", namespace, "members"))

    def put(self, namespace: str, member: str, role: str) -> Document:
        """Give somebody a role."""
        path = segments("namespaces", namespace, "members", member)
        answer: Document = self._http.send("PUT", path, body={"role": role})
        return answer

    def remove(self, namespace: str, member: str) -> None:
        """Take somebody's role away."""
        self._http.send("DELETE", segments("namespaces", namespace, "members", member))


class Tokens:
    """Access for programs."""

    def __init__(self, http: Transport) -> None:
        self._http = http

    def create(self, name: str, *, role: str, expires_at: datetime | None = None) -> Document:
        """A new token for the client's namespace; its text is in this answer and nowhere else."""
        body = {"name": name, "role": role, **({"expiresAt": moment(expires_at)} if expires_at else {})}
        answer: Document = self._http.send("POST", "/tokens", body=body)
        return answer

    def list(self) -> Iterator[Document]:
        """Every token, without its text."""
        return self._http.pages("/tokens")

    def revoke(self, id_: str) -> None:
        """It opens nothing any more."""
        self._http.send("DELETE", segments("tokens", id_))


class Code:
    """Packs of code that `python` tasks are imported from: zips, named by the SHA-256 of their bytes."""

    def __init__(self, http: Transport) -> None:
        self._http = http

    def target(self) -> Document:
        """What to pack for: the version of Python, the platforms of wheels, and how large a pack may be."""
        answer: Document = self._http.send("GET", "/code")
        return answer

    def get(self, sha256: str) -> Document:
        """How large a pack is; NotFound where the namespace has none of this name."""
        answer: Document = self._http.send("GET", segments("code", sha256))
        return answer

    def put(self, content: bytes) -> Document:
        """Store a pack, unless it is there already: in a call, or, where it is too large for one, by an address."""
        sha256 = hashlib.sha256(content).hexdigest()
        try:
            return self.get(sha256)
        except NotFound:
            pass  # safe: who stores the same at the same time stores the same bytes
        if len(content) > INLINE_BYTES_MAX:
            upload = self._http.send("POST", segments("code", sha256, "upload"), body={"size": len(content)})
            if upload["url"]:
                self._http.upload(upload["url"], content, upload["headers"])
                return self.get(sha256)
        body = {"content": base64.b64encode(content).decode()}
        answer: Document = self._http.send("PUT", segments("code", sha256), body=body, patience_s=_PATIENCE_S)
        return answer


class Leases:
    """Work for external workers: pulled, kept alive and reported, each report under the lease's epoch."""

    def __init__(self, http: Transport) -> None:
        self._http = http

    def lease(self, worker: str, *, labels: Sequence[str] = (), max_: int = 1, wait_s: int = 0) -> list[Document]:
        """Work to do now; with `wait_s`, whatever comes within that time: a server that keeps nobody waiting says when
        to ask again."""
        left_s = wait_s
        while True:
            body = {"workerId": worker, "labels": [*labels], "max": max_, "waitSeconds": left_s}
            answer = self._http.send("POST", "/leases", body=body, patience_s=left_s)
            again_s = math.ceil(answer.get("retryAfterSeconds") or 0)
            if answer["items"] or not 0 < again_s <= left_s:
                return [*answer["items"]]
            self._http.pause(again_s)
            left_s -= again_s

    def get(self, lease: str, epoch: int) -> Document:
        """The work of a lease, as whoever owns it may see it."""
        answer: Document = self._http.send("GET", segments("leases", lease), query={"epoch": epoch})
        return answer

    def heartbeat(self, lease: str, epoch: int, *, progress: int | None = None, checkpoint: object = None) -> Document:
        """The lease goes on; a Conflict says that somebody else has the work now."""
        body = {"epoch": epoch, "progress": progress, "checkpoint": checkpoint}
        return self._report(lease, "heartbeat", body)

    def complete(self, lease: str, epoch: int, output: object = None, *, skipped: str | None = None) -> Document:
        """It is done, or there was nothing to do, for a reason; saying so again changes nothing."""
        return self._report(lease, "complete", {"epoch": epoch, "output": output, "skipped": skipped})

    def fail(self, lease: str, epoch: int, error: str | Document, class_: str = "transient") -> Document:
        """It failed, with a sentence or with a `name` and a `message`; the job's retry policy decides what follows."""
        return self._report(lease, "fail", {"epoch": epoch, "error": error, "class": class_})

    def _report(self, lease: str, what: str, body: Mapping[str, object]) -> Document:
        said = {name: value for name, value in body.items() if value is not None}
        answer: Document = self._http.send("POST", segments("leases", lease, what), body=said)
        return answer
