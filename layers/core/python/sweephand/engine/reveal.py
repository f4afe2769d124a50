"""Give a call the values of its secrets, and take them out again of what comes of it.

Values are in memory only, from here to the end of the attempt. A value that was changed while an attempt ran is
redacted as it was where the attempt runs; what an external worker reports is redacted as the value is then.
"""

from __future__ import annotations

from typing import Final, assert_never

from msgspec.structs import replace

from sweephand.calls import Call, Outcome, Skipped, Succeeded
from sweephand.domain.fields import json_bytes
from sweephand.domain.ids import Namespace
from sweephand.domain.job import Task
from sweephand.domain.limits import OUTPUT_KEPT_MAX
from sweephand.domain.output import Kept, too_large
from sweephand.domain.retry import Failure, FailureClass
from sweephand.domain.secret import VALUE_CHARS_MIN, declared, elsewhere
from sweephand.engine.share import SECRET
from sweephand.errors import Refused, Unavailable
from sweephand.messages import Again, Elsewhere, Unstarted
from sweephand.ports import Stores
from sweephand.secrets import Redactor, Values, secret_of

_MESSAGE_CHARS_MAX: Final = 1_000


def reveal(stores: Stores, call: Call) -> Call | Failure:
    """The call with the values of the secrets that its task declares, or how the attempt fails for want of one.

    Repeating it reads them again.
    """
    wanted = declared(call.task)
    if not wanted:
        return call
    found: dict[str, str] = {}
    namespace = call.run.key.job.namespace
    try:
        for name, reference in wanted.items():
            value = _value(stores, namespace, reference)
            if isinstance(value, Failure):
                return value
            found[name] = value
    except Unavailable as error:
        return Failure("SecretsUnavailable", f"The secrets could not be read: {error.message}"[:_MESSAGE_CHARS_MAX])
    return replace(call, secrets=Values(found))


def redactor_of(stores: Stores, namespace: Namespace, task: Task) -> Redactor:
    """For what an attempt says that ran where its values are no longer known: as they are now, if they still are."""
    values = (_value(stores, namespace, reference) for reference in declared(task).values())
    return Redactor(value for value in values if isinstance(value, str))


def redacted(outcome: Outcome, redact: Redactor) -> Outcome:
    """The outcome without any value; the marks in their places may make an output too long to be kept.

    What is said in words may have been cut at its end, in the midst of a value.
    """
    if not redact:
        return outcome
    match outcome:
        case Succeeded(Kept()):
            return outcome  # it was redacted before it was kept
        case Succeeded(output):
            kept = redact.document(output)
            return too_large() if json_bytes(kept) > max(OUTPUT_KEPT_MAX, json_bytes(output)) else Succeeded(kept)
        case Skipped(reason):
            return Skipped(redact(reason, cut_after=True))
        case Unstarted(reason):
            return Unstarted(redact(reason, cut_after=True))
        case Again(after, reason):
            return Again(after, redact(reason, cut_after=True))
        case Failure():
            error, message = (redact(text, cut_after=True) for text in (outcome.error, outcome.message))
            return replace(outcome, error=error, message=message)
        case _:
            assert_never(outcome)


def redacted_of(call: Call, outcome: Outcome | Elsewhere) -> Outcome | Elsewhere:
    """What became of a call, without the values that it was given."""
    if isinstance(outcome, Elsewhere):
        return outcome
    return redacted(outcome, Redactor(call.secrets.by_name.values()))


def _value(stores: Stores, namespace: Namespace, reference: str) -> str | Failure:
    place = elsewhere(reference)
    if place is None:
        return _own(stores, namespace, reference)
    try:
        value = stores.secrets.fetch(namespace, place)
    except Refused as refused:
        return _permanent("SecretRefused", refused.message)
    if value is None:
        return _permanent("SecretNotFound", f"There is no secret {reference}.")
    if len(value) < VALUE_CHARS_MIN:
        message = f"The secret {reference} has fewer than {VALUE_CHARS_MIN} characters: they cannot be redacted."
        return _permanent("SecretTooShort", message)
    return value


def _own(stores: Stores, namespace: Namespace, name: str) -> str | Failure:
    stored = stores.shared.get(namespace, SECRET, name)
    if stored is None:
        return _permanent("SecretNotFound", f"There is no secret {name}: `sweephand secret set {name}` stores one.")
    value = stores.secrets.unseal(stored[1]["sealed"], secret_of(namespace, name))
    if value is None:
        message = f"The secret {name} cannot be opened: the key that it was stored with is gone. Set it again."
        return _permanent("SecretUnreadable", message)
    return value


def _permanent(error: str, message: str) -> Failure:
    return Failure(error, message, FailureClass.PERMANENT)
