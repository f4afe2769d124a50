"""A sensor's look at a bucket: whether a key is there, or one that begins so, and is large enough.

It lists and never reads: a right to list tells what is there, and nothing of what is in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from msgspec.structs import replace

from sweephand.calls import Outcome, Succeeded
from sweephand.domain.templates import as_text
from sweephand.messages import Again
from sweephand.operators.aws.clients import Caller, made, soon
from sweephand.operators.operator import Attempt

LISTED_MAX: Final = 1_000
"""Keys of a prefix that one look sees."""
_NOW: Final = timedelta(0)
"""How often to look is for the engine to say."""


class Objects(Caller):
    """Looks once, and says what it saw."""

    service, kind = "s3", "sensor.s3"

    def call(self, attempt: Attempt) -> Outcome:
        task = attempt.call.task
        looking = replace(attempt, call=replace(attempt.call, task=replace(task, spec=task.spec["s3"])))
        bucket = as_text(looking.option("bucket", ""))
        key, prefix = (as_text(looking.option(one, "")) for one in ("key", "prefix"))
        least = looking.option("minBytes", 0)
        self._targets.check_keys(bucket, key or prefix, "sensor.s3")
        within = soon(attempt.call)
        client = self._clients.of(self.service, "*", within)
        # A key comes before all others that begin with it.
        most = 1 if key else LISTED_MAX
        answer = made(client, "list_objects_v2", within, Bucket=bucket, Prefix=key or prefix, MaxKeys=most)
        for one in answer.get("Contents", ()):
            if (one["Key"] == key if key else not _is_folder(one, prefix)) and one["Size"] >= least:
                return Succeeded(_found(bucket, one))
        large = f" of at least {least} bytes" if least else ""
        return Again(_NOW, f"s3://{bucket} has no {f'key {key}' if key else f'key that begins with {prefix}'}{large}")


def _is_folder(one: Mapping[str, Any], prefix: str) -> bool:
    """What consoles put where they show a folder."""
    return one["Key"] == prefix and prefix.endswith("/") and one["Size"] == 0


def _found(bucket: str, one: Mapping[str, Any]) -> dict[str, Any]:
    changed = one["LastModified"].isoformat().replace("+00:00", "Z")
    etag = str(one["ETag"]).strip('"')
    return {"bucket": bucket, "key": one["Key"], "size": one["Size"], "etag": etag, "lastModified": changed}
