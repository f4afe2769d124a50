"""Secrets sealed with the deployment's customer key, and those that Secrets Manager and Parameter Store keep.

Each text has a data key of its own, which KMS makes and opens under the text's encryption context: what it is for. So
a role's policy says what its function may open, and CloudTrail who opened what.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode, urlsafe_b64encode
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from typing import Any, Final

from botocore.exceptions import ClientError

from sweephand.aws.calls import asking, code_of
from sweephand.domain.ids import Namespace
from sweephand.domain.secret import SECRETS_MANAGER, Elsewhere
from sweephand.errors import Refused
from sweephand.secrets import Bound, unwrapped, wrapped
from sweephand.topology import Names

Client = Callable[[str], Any]
"""A client of a service, made when it is first asked for: most functions need none."""

_ABSENT: Final = frozenset({"ResourceNotFoundException", "ParameterNotFound", "ParameterVersionNotFound"})
_FORBIDDEN: Final = frozenset(
    {"AccessDeniedException", "DecryptionFailure", "InvalidRequestException", "ValidationException"}
)
_UNREADABLE: Final = frozenset({"InvalidCiphertextException", "IncorrectKeyException"})
NAMESPACE: Final = "{namespace}"
"""In a pattern of ARNs, the namespace of whoever asks."""


class KmsSecrets:
    """The `Secrets` port; `readable` are patterns of the ARNs that tasks may refer to."""

    def __init__(self, client: Client, names: Names, *, readable: Sequence[str] = ()) -> None:
        self._client = cache(client)
        self._key = names.key
        self._readable = readable

    def seal(self, text: str, bound_to: Bound) -> str:
        with asking("make a data key"):
            made = self._client("kms").generate_data_key(
                KeyId=self._key, KeySpec="AES_256", EncryptionContext=dict(bound_to)
            )
        sealed: str = _box(made["Plaintext"]).encrypt(wrapped(text, bound_to)).decode()
        return f"{b64encode(made['CiphertextBlob']).decode()}.{sealed}"

    def unseal(self, sealed: str, bound_to: Bound) -> str | None:
        return unseal(sealed, bound_to, self._client)

    def fetch(self, namespace: Namespace, place: Elsewhere) -> str | None:
        try:
            arn, text = self._stored(place)
        except _Refusal as refusal:
            if refusal.code in _ABSENT:
                return None
            raise Refused(f"{place.store} let nobody read {place.name}: {refusal.code}. {_REMEDY}") from None
        if not any(fnmatchcase(arn, pattern.replace(NAMESPACE, namespace)) for pattern in self._readable):
            raise Refused(f"Tasks of {namespace} may not read {place.name} of {place.store}. {_REMEDY}")
        return text if text is None or not place.field else _field(text, place.field)

    def _stored(self, place: Elsewhere) -> tuple[str, str | None]:
        with asking(f"read {place.name} of {place.store}"):
            try:
                if place.store == SECRETS_MANAGER:
                    secret = self._client(place.store).get_secret_value(SecretId=place.name)
                    return secret["ARN"], secret.get("SecretString")
                found = self._client(place.store).get_parameter(Name=place.name, WithDecryption=True)["Parameter"]
                return found["ARN"], found["Value"]
            except ClientError as error:
                if code_of(error) in _ABSENT | _FORBIDDEN:
                    raise _Refusal(code_of(error)) from error
                raise


_REMEDY: Final = "The deployment's option secretArns names what tasks may read."


class _Refusal(Exception):
    """The store answered, and gave no value."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


def unseal(sealed: str, bound_to: Bound, client: Client) -> str | None:
    """The text, if it was sealed for this."""
    from cryptography.fernet import InvalidToken

    key, _, content = sealed.partition(".")
    with asking("open a data key"):
        try:
            opened = client("kms").decrypt(CiphertextBlob=b64decode(key), EncryptionContext=dict(bound_to))
        except ClientError as error:
            if code_of(error) in _UNREADABLE:
                return None
            raise
    try:
        return unwrapped(_box(opened["Plaintext"]).decrypt(content), bound_to)
    except InvalidToken:
        return None


def _box(key: bytes) -> Any:
    from cryptography.fernet import Fernet

    return Fernet(urlsafe_b64encode(key))


def _field(text: str, field: str) -> str | None:
    """A field of a secret that is a JSON object; a value that is no text is as JSON writes it."""
    try:
        document = json.loads(text)
    except ValueError:
        return None
    found = document.get(field) if isinstance(document, Mapping) else None
    return found if found is None or isinstance(found, str) else json.dumps(found)
