"""Job files in S3: beneath one prefix, and beneath that by namespace."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from botocore.exceptions import ClientError

from sweephand.aws.calls import asking, code_of
from sweephand.engine.scan import Found
from sweephand.errors import Unavailable
from sweephand.topology import JOB_FILES_PREFIX

_FILES_MAX = 10_000


class S3JobFiles:
    """All job files of a bucket."""

    def __init__(self, client: Any, bucket: str) -> None:
        self._client, self._bucket = client, bucket

    def by_namespace(self, is_job_file: Callable[[str], bool]) -> dict[str, list[Found]]:
        """Those that are there now, listed together; `is_job_file` tells by their paths which they are."""
        found: dict[str, list[Found]] = {}
        for key, tag in self._objects():
            namespace, _, path = key.removeprefix(JOB_FILES_PREFIX).partition("/")
            if path and is_job_file(path):
                found.setdefault(namespace, []).append(Found(path, tag))
        if sum(map(len, found.values())) > _FILES_MAX:
            raise Unavailable(f"There are more than {_FILES_MAX} job files: that is the most.")
        return found

    def folder(self, namespace: str, files: Sequence[Found]) -> S3Folder:
        """A namespace's files, as they were listed."""
        return S3Folder(self._client, self._bucket, namespace, files)

    def _objects(self) -> list[tuple[str, str]]:
        found: list[tuple[str, str]] = []
        more: dict[str, str] = {}
        with asking("list the job files"):
            while True:
                page = self._client.list_objects_v2(Bucket=self._bucket, Prefix=JOB_FILES_PREFIX, **more)
                found += [(one["Key"], one["ETag"].strip('"')) for one in page.get("Contents", ())]
                if not page.get("IsTruncated"):
                    return found
                more = {"ContinuationToken": page["NextContinuationToken"]}


class S3Folder:
    """The job files of one namespace."""

    def __init__(self, client: Any, bucket: str, namespace: str, files: Sequence[Found]) -> None:
        self._client, self._bucket, self._namespace, self._files = client, bucket, namespace, files

    def listed(self) -> Sequence[Found]:
        return self._files

    def read(self, path: str) -> bytes | None:
        with asking(f"read the job file {path}"):
            try:
                key = f"{JOB_FILES_PREFIX}{self._namespace}/{path}"
                content: bytes = self._client.get_object(Bucket=self._bucket, Key=key)["Body"].read()
            except ClientError as error:
                if code_of(error) not in {"NoSuchKey", "404"}:
                    raise
                return None
        return content
