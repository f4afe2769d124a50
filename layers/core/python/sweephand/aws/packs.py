"""Packs in S3: beneath one prefix, by namespace. Without the right to list, only who knows a name can read it."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from functools import cached_property
from typing import Any, Final

from botocore.exceptions import ClientError

from sweephand.aws.calls import asking, code_of
from sweephand.domain.ids import Namespace
from sweephand.errors import Unavailable
from sweephand.packs import ON_LAMBDA, PACK_BYTES_MAX, Pack, Platform, Upload
from sweephand.topology import PACKS_PREFIX

URL_S: Final = 900
"""How long an address takes its pack."""
_ABSENT: Final = frozenset({"NoSuchKey", "404", "403", "AccessDenied"})
"""Who may not list is told that a key which is not there is not allowed."""


class S3Packs:
    """In one bucket; without one, there are none. The client is made when it is first needed."""

    def __init__(self, client: Callable[[], Any], bucket: str) -> None:
        self._make_client = client
        self._bucket = bucket

    @cached_property
    def _client(self) -> Any:
        return self._make_client()

    @property
    def platform(self) -> Platform:
        return ON_LAMBDA

    def keep(self, namespace: Namespace, pack: Pack) -> None:
        where = self._where(namespace, pack.digest)
        with asking(f"keep the code {pack.digest}"):
            self._client.put_object(**where, Body=pack.content, ChecksumSHA256=_checksum(pack.digest))

    def size(self, namespace: Namespace, digest: str) -> int | None:
        with asking(f"look at the code {digest}"):
            try:
                return int(self._client.head_object(**self._where(namespace, digest))["ContentLength"])
            except ClientError as error:
                if code_of(error) not in _ABSENT:
                    raise
                return None

    def read(self, namespace: Namespace, digest: str) -> bytes | None:
        with asking(f"read the code {digest}"):
            try:
                answer = self._client.get_object(**self._where(namespace, digest))
                content: bytes = answer["Body"].read(PACK_BYTES_MAX + 1)
            except ClientError as error:
                if code_of(error) not in _ABSENT:
                    raise
                return None
        return content

    def upload(self, namespace: Namespace, digest: str, size: int) -> Upload | None:
        """S3 itself refuses another size, and bytes that do not have this name."""
        checksum = _checksum(digest)
        params = {**self._where(namespace, digest), "ContentLength": size, "ChecksumSHA256": checksum}
        url: str = self._client.generate_presigned_url("put_object", Params=params, ExpiresIn=URL_S)
        return Upload(url, {"x-amz-checksum-sha256": checksum})

    def _where(self, namespace: Namespace, digest: str) -> dict[str, str]:
        if not self._bucket:
            raise Unavailable("No bucket keeps code here.")
        return {"Bucket": self._bucket, "Key": f"{PACKS_PREFIX}{namespace}/{digest}.zip"}


def _checksum(digest: str) -> str:
    """The same SHA-256, as S3 writes it."""
    return b64encode(bytes.fromhex(digest)).decode()
