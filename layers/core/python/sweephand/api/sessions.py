"""JSON Web Tokens: recognising those of an issuer, and, on one machine, being the issuer."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from threading import Lock
from typing import Any, Final

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from msgspec import Struct

from sweephand.ports import Clock
from sweephand.settings import Settings

SESSION: Final = timedelta(hours=1)
_ALGORITHM: Final = "RS256"
_ACCESS: Final = "access"
_REFETCH_AFTER: Final = timedelta(minutes=1)
_REQUIRED: Final = ("exp", "iat", "iss", "sub")

Keys = Mapping[str, jwt.PyJWK]


class PublishedKeys:
    """An issuer's public keys, by id; fetched again where an unknown id turns up, but not more than once a minute."""

    def __init__(self, fetch: Callable[[], Mapping[str, Any]], clock: Clock) -> None:
        self._fetch = fetch
        self._clock = clock
        self._keys: Keys = {}
        self._fetched_at: datetime | None = None
        self._lock = Lock()

    def get(self, key_id: str) -> jwt.PyJWK | None:
        """The key; None where there is none, or the issuer does not answer: then the cached ones go on to hold."""
        if key_id not in self._keys:
            with self._lock:  # who comes while they are fetched waits for them, and is not refused
                self._fetch_again(key_id, self._clock.now())
        return self._keys.get(key_id)

    def _fetch_again(self, key_id: str, now: datetime) -> None:
        if key_id in self._keys or (self._fetched_at is not None and now - self._fetched_at <= _REFETCH_AFTER):
            return
        self._fetched_at = now
        try:
            found = jwt.PyJWKSet.from_dict(dict(self._fetch()))
            self._keys = {key.key_id: key for key in found.keys if key.key_id}
        except (OSError, jwt.PyJWTError):
            pass  # safe: without its key no token is accepted, and those whose keys are known still are


class Verifier(Struct, frozen=True):
    """Whose tokens are believed. Cognito's access tokens name their audience in `client_id`."""

    keys: PublishedKeys
    issuer: str
    audience: str
    audience_claim: str = "aud"

    @classmethod
    def of_user_pool(cls, fetch: Callable[[], Mapping[str, Any]], settings: Settings, clock: Clock) -> Verifier:
        """Cognito's tokens for the people of a deployment."""
        return cls(PublishedKeys(fetch, clock), settings.issuer, settings.audience, audience_claim="client_id")

    def claims(self, text: str) -> Mapping[str, Any] | None:
        """What a token says, if it is one of this issuer's, for us, in force, and meant for access; else None."""
        try:
            unverified = jwt.get_unverified_header(text)
            key_id = unverified.get("kid")
            key = self.keys.get(key_id) if unverified.get("alg") == _ALGORITHM and isinstance(key_id, str) else None
            if key is None:
                return None
            options: Any = {"require": list(_REQUIRED), "verify_aud": False}
            claims = jwt.decode(text, key.key, algorithms=[_ALGORITHM], issuer=self.issuer, options=options)
        except (jwt.PyJWTError, ValueError, TypeError):
            return None
        is_ours = claims.get(self.audience_claim) == self.audience and claims.get("token_use") == _ACCESS
        return claims if is_ours else None


class Issuer:
    """The issuer on one machine: tokens of one hour, for those who bring a token that lasts."""

    def __init__(self, key_pem: bytes, *, url: str, clock: Clock) -> None:
        key = serialization.load_pem_private_key(key_pem, password=None)
        if not isinstance(key, rsa.RSAPrivateKey):
            raise TypeError("The issuer's key must be an RSA key.")
        self._key = key
        self._clock = clock
        self.url: Final = url
        public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key()))
        self._key_id = jwt.utils.base64url_encode(str(public["n"]).encode()[:24]).decode()
        self._public = {**public, "kid": self._key_id, "use": "sig", "alg": _ALGORITHM}

    @staticmethod
    def new_key() -> bytes:
        """A fresh private key, as PEM."""
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        return key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )

    def jwks(self) -> dict[str, Any]:
        """The public key, for whoever verifies."""
        return {"keys": [self._public]}

    def verifier(self) -> Verifier:
        """Believes this issuer."""
        return Verifier(PublishedKeys(self.jwks, self._clock), self.url, "sweephand")

    def issue(self, subject: str, **claims: Any) -> tuple[str, datetime]:
        """A token, and when it ends."""
        now = self._clock.now()
        ends_at = now + SESSION
        payload = {
            "sub": subject,
            "iss": self.url,
            "aud": "sweephand",
            "token_use": _ACCESS,
            "iat": int(now.timestamp()),
            "exp": int(ends_at.timestamp()),
            **claims,
        }
        return jwt.encode(payload, self._key, algorithm=_ALGORITHM, headers={"kid": self._key_id}), ends_at
