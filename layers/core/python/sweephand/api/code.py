"""The code of `python` tasks: packs, which are stored under the SHA-256 of their bytes before a job names them."""

from __future__ import annotations

import base64
import binascii
from typing import Annotated, Any, Final

from aws_lambda_powertools.event_handler.openapi.params import Body, Path
from aws_lambda_powertools.event_handler.router import APIGatewayRouter

from sweephand.api import bodies
from sweephand.api.asked import Answer, answer, asked
from sweephand.api.schemas import says
from sweephand.domain.kinds import CODE
from sweephand.errors import InvalidInput, NotFound
from sweephand.packs import INLINE_BYTES_MAX, PACK_BYTES_MAX, Pack

router: Final = APIGatewayRouter()  # type: ignore[no-untyped-call]

_TAG: Final = "code"
_Digest = Annotated[str, Path(pattern=f"^{CODE}$")]


@router.get("/code", **says("getCodeTarget", "What code is packed for here", {200: "CodeTarget"}, tag=_TAG))
def get_code_target() -> Answer:
    platform = asked().world.packs.platform
    limits = {"maxBytes": PACK_BYTES_MAX, "inlineBytes": INLINE_BYTES_MAX}
    return answer(200, {"python": platform.python, "wheels": list(platform.wheels), **limits})


@router.get("/code/<sha256>", **says("getCode", "Whether a pack of code is there", {200: "Code"}, tag=_TAG))
def get_code(sha256: _Digest) -> Answer:
    ask = asked()
    size = ask.world.packs.size(ask.namespace, sha256)
    if size is None:
        raise NotFound(f"There is no code {sha256}.")
    return answer(200, _shape(sha256, size))


@router.put("/code/<sha256>", **says("putCode", "Store a pack of code", {200: "Code", 201: "Code"}, tag=_TAG))
def put_code(sha256: _Digest, body: Annotated[bodies.CodeBody, Body()]) -> Answer:
    """The same again changes nothing: what has this name has these bytes."""
    from sweephand.domain.zips import check_zip, digest_of  # late: no other call needs to read a zip

    ask = asked()
    content = _decoded(body.content)
    found = digest_of(content)
    if found != sha256:
        raise InvalidInput(f"It is not what it is named for: its SHA-256 is {found}.", "content")
    check_zip(content)
    if ask.world.packs.size(ask.namespace, sha256) is not None:
        return answer(200, _shape(sha256, len(content)))
    ask.record("code.put", f"code/{sha256}", after={"size": len(content)})
    ask.world.packs.keep(ask.namespace, Pack(sha256, content))
    return answer(201, _shape(sha256, len(content)))


@router.post(
    "/code/<sha256>/upload",
    **says("openUpload", "An address for a pack that is too large for a call", {200: "CodeUpload"}, tag=_TAG),
)
def open_upload(sha256: _Digest, body: Annotated[bodies.UploadBody, Body()]) -> Answer:
    ask = asked()
    ask.record("code.upload", f"code/{sha256}", after={"size": body.size})
    upload = ask.world.packs.upload(ask.namespace, sha256, body.size)
    if upload is None:
        return answer(200, {"sha256": sha256, "url": None, "headers": {}})
    return answer(200, {"sha256": sha256, "url": upload.url, "headers": dict(upload.headers)})


def _decoded(content: str) -> bytes:
    try:
        decoded = base64.b64decode(content.encode("ascii"), validate=True)
    except (binascii.Error, UnicodeEncodeError):
        raise InvalidInput("It is not base64.", "content") from None
    if len(decoded) > PACK_BYTES_MAX:
        raise InvalidInput(f"It has {len(decoded):,} bytes: {PACK_BYTES_MAX:,} are the most.", "content")
    return decoded


def _shape(sha256: str, size: int) -> dict[str, Any]:
    return {"sha256": sha256, "size": size}
