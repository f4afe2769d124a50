"""Artifacts in S3: beneath one prefix, named by a hash of their task run, so that no name reaches another's."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, Final

from botocore.exceptions import ClientError

from sweephand.artifacts import FILES_MAX, Artifact, Found
from sweephand.aws.calls import asking, code_of
from sweephand.errors import Unavailable
from sweephand.logs import LogKey
from sweephand.topology import ARTIFACTS_PREFIX

_ABSENT: Final = frozenset({"NoSuchKey", "404"})
URL_S: Final = 300
"""How long an address serves its file."""


class S3Artifacts:
    """In one bucket; without one, nothing is kept. The client is made when it is first needed."""

    def __init__(self, client: Callable[[], Any], bucket: str) -> None:
        self._make_client = client
        self._bucket = bucket

    @cached_property
    def _client(self) -> Any:
        return self._make_client()

    def keep(self, key: LogKey, files: list[Found]) -> None:
        for file in files if self._bucket else ():
            with asking(f"keep an artifact of {key.run}"), file.path.open("rb") as body:
                self._client.put_object(Bucket=self._bucket, Key=_prefix(key) + file.artifact.name, Body=body)

    def keep_output(self, key: LogKey, content: bytes) -> None:
        if not self._bucket:
            raise Unavailable("No bucket keeps outputs here.")
        with asking(f"keep the output of {key.run}"):
            self._client.put_object(Bucket=self._bucket, Key=_output(key), Body=content)

    def read_output(self, key: LogKey) -> bytes | None:
        if not self._bucket:
            return None
        with asking(f"read the output of {key.run}"):
            try:
                answer = self._client.get_object(Bucket=self._bucket, Key=_output(key))
                content: bytes = answer["Body"].read()
            except ClientError as error:
                if code_of(error) not in _ABSENT:
                    raise
                return None
        return content

    def listed(self, key: LogKey) -> list[Artifact]:
        if not self._bucket:
            return []
        prefix = _prefix(key)
        with asking(f"list the artifacts of {key.run}"):
            answer = self._client.list_objects_v2(Bucket=self._bucket, Prefix=prefix, MaxKeys=FILES_MAX)
        found = answer.get("Contents", ())
        return sorted(Artifact(str(one["Key"]).removeprefix(prefix), int(one["Size"])) for one in found)

    def url(self, key: LogKey, name: str) -> str | None:
        """Downloads, and never shows, what is there: it is somebody else's."""
        params = {
            "Bucket": self._bucket,
            "Key": _prefix(key) + name,
            "ResponseContentDisposition": "attachment",
            "ResponseContentType": "application/octet-stream",
        }
        address: str = self._client.generate_presigned_url("get_object", Params=params, ExpiresIn=URL_S)
        return address

    def read(self, key: LogKey, name: str) -> bytes | None:  # noqa: ARG002 - as the port has it
        """Never through the API: its answers are small, and the address is enough."""
        return None


def _output(key: LogKey) -> str:
    """Beside the attempt's files, and beneath no prefix that lists them."""
    return f"{_prefix(key).removesuffix('/')}.output"


def _prefix(key: LogKey) -> str:
    return f"{ARTIFACTS_PREFIX}{key.digest}/{key.attempt}/"
