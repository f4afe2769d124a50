"""Job files that are scanned: what became of each."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from aws_lambda_powertools.event_handler.openapi.params import Query
from aws_lambda_powertools.event_handler.router import APIGatewayRouter

from sweephand.api.asked import Answer, answer, asked
from sweephand.api.cursors import decode_cursor, encode_cursor
from sweephand.api.schemas import Cursor, Limit, says
from sweephand.api.shapes import moment, page
from sweephand.engine.scan import FILE, FileState, decode_state

router: Final = APIGatewayRouter()  # type: ignore[no-untyped-call]

Status = Literal["applied", "error"]


@router.get("/files", **says("listFiles", "Scanned job files, and what became of them", {200: "FilePage"}, tag="files"))
def list_files(status: Annotated[Status | None, Query()] = None, limit: Limit = 100, cursor: Cursor = None) -> Answer:
    ask = asked()
    bound_to = ("files", ask.namespace, status)
    position = decode_cursor(cursor, bound_to, length=1)
    found = ask.world.shared.listed(ask.namespace, FILE, after=position[0] if position else None, limit=limit + 1)
    shapes = [_shape(decode_state(one.name, one.document)) for one in found[:limit]]
    more = encode_cursor([found[limit - 1].name], bound_to) if len(found) > limit else None
    return answer(200, page([one for one in shapes if status in (None, one["status"])], more))


def _shape(state: FileState) -> dict[str, Any]:
    return {
        "path": state.path,
        "status": "error" if state.errors else "applied",
        "jobs": [{"jobId": name, "version": version} for name, version in state.jobs.items()],
        "errors": [{"path": path, "message": message} for path, message in state.errors],
        "scannedAt": moment(state.at),
    }
