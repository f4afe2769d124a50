"""What an error of AWS means: its code is the failure's name, so that a job's `retry.on` and `retry.never` can name it.

throttled, no room, 5xx, in the midst of a change, unreachable, no answer  → transient
not allowed, not there, malformed, and all else                            → permanent: the same call would fail again
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from sweephand.domain.duration import format_duration
from sweephand.domain.retry import Failure, FailureClass
from sweephand.engine.complete import TIMEOUT

__all__ = ["Failed", "failure_of", "failure_of_code", "permanent"]

MESSAGE_CHARS_MAX: Final = 1_000
NAME_CHARS_MAX: Final = 128

_TRANSIENT: Final = frozenset(
    {
        "BandwidthLimitExceeded",
        "ConcurrentModificationException",
        "ExecutionLimitExceeded",
        "ExpiredToken",
        "ExpiredTokenException",
        "IDPCommunicationError",
        "InternalError",
        "InternalException",
        "InternalFailure",
        "InternalServerError",
        "KmsThrottled",
        "KMSThrottlingException",
        "LimitExceededException",
        "OverLimit",
        "PriorRequestNotComplete",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "RequestThrottled",
        "RequestThrottledException",
        "RequestTimeout",
        "RequestTimeoutException",
        "ResourceConflictException",
        "ResourceNotReadyException",
        "ServiceUnavailable",
        "ServiceUnavailableException",
        "SlowDown",
        "SnapStartNotReadyException",
        "ThrottledException",
        "Throttling",
        "ThrottlingException",
        "TooManyRequestsException",
        "TransactionInProgressException",
    }
)
_TOO_MANY: Final = 429
_SERVER_ERROR: Final = 500


class Failed(Exception):
    """A call did not come about, or came to nothing: this is the attempt's outcome."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


def failure_of(error: Exception, what: str, within: timedelta) -> Failure:
    """What an error of botocore means; any other is ours, and is raised again."""
    from botocore import exceptions as known
    from botocore.parsers import ResponseParserError

    match error:
        case known.ClientError():
            return _refused(error.response, what)
        case known.ReadTimeoutError():
            return Failure(
                TIMEOUT, f"{what} did not answer within {format_duration(within)}: it may have taken effect."
            )
        case known.ParamValidationError():
            return permanent("ParamValidationError", f"{what}: {error}")
        case known.HTTPClientError() | known.ConnectionError() | known.IncompleteReadError() | ResponseParserError():
            return Failure(type(error).__name__, f"{what} could not be reached: {error}"[:MESSAGE_CHARS_MAX])
        case known.CredentialRetrievalError() | known.MetadataRetrievalError():
            return Failure(type(error).__name__, f"{what}: {error}"[:MESSAGE_CHARS_MAX])
        case known.BotoCoreError():
            return permanent(type(error).__name__, f"{what}: {error}")
        case _:
            raise error


def failure_of_code(code: str, message: str, *, status: int = 400) -> Failure:
    """What an error code means, wherever it was found."""
    is_transient = status >= _SERVER_ERROR or status == _TOO_MANY or code in _TRANSIENT
    kind = FailureClass.TRANSIENT if is_transient else FailureClass.PERMANENT
    return Failure(code[:NAME_CHARS_MAX] or "Unknown", message[:MESSAGE_CHARS_MAX], kind)


def permanent(error: str, message: str) -> Failure:
    return Failure(error[:NAME_CHARS_MAX], message[:MESSAGE_CHARS_MAX], FailureClass.PERMANENT)


def _refused(response: Mapping[str, Any], what: str) -> Failure:
    told = response.get("Error", {})
    # SQS and others begin with a namespace that nobody would write into a job.
    code = str(told.get("Code", "")).rpartition(".")[2].rpartition("#")[2]
    status = response.get("ResponseMetadata", {}).get("HTTPStatusCode", 400)
    return failure_of_code(code, f"{what}: {told.get('Message') or code}", status=status)
