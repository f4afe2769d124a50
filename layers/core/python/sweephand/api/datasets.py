"""Datasets: who publishes them, who runs when they are updated, and updates from outside."""

from __future__ import annotations

from typing import Annotated, Any, Final

from aws_lambda_powertools.event_handler.openapi.params import Body
from aws_lambda_powertools.event_handler.router import APIGatewayRouter

from sweephand.api import bodies
from sweephand.api.asked import Answer, Asked, answer, asked
from sweephand.api.cursors import decode_cursor, encode_cursor
from sweephand.api.schemas import Cursor, InPath, Limit, says
from sweephand.api.shapes import page
from sweephand.engine.datasets import Dataset, dataset_of, datasets_of
from sweephand.engine.publish import publish_outside
from sweephand.errors import NotFound

router: Final = APIGatewayRouter()  # type: ignore[no-untyped-call]

_TAG: Final = "datasets"


@router.get("/datasets", **says("listDatasets", "Who publishes what, and for whom", {200: "DatasetPage"}, tag=_TAG))
def list_datasets(limit: Limit = 100, cursor: Cursor = None) -> Answer:
    ask = asked()
    bound_to = ("datasets", ask.namespace)
    position = decode_cursor(cursor, bound_to, length=1)
    found, last = datasets_of(ask.world, ask.namespace, after=position[0] if position else None, limit=limit)
    more = encode_cursor([last], bound_to) if last is not None else None
    return answer(200, page([_shape(one) for one in found], more))


@router.get("/datasets/<dataset>", **says("getDataset", "Show a dataset", {200: "Dataset"}, tag=_TAG))
def get_dataset(dataset: InPath) -> Answer:
    return answer(200, _shape(_known(asked(), dataset)))


@router.post(
    "/datasets/<dataset>/updates",
    **says("updateDataset", "Say that a dataset was updated", {202: "Updated"}, tag=_TAG),
)
def update_dataset(dataset: InPath, body: Annotated[bodies.UpdateBody, Body()]) -> Answer:
    ask = asked()
    _known(ask, dataset)
    ask.record("dataset.update", f"datasets/{dataset}", note=(body.id or "")[:128])
    # Subscribers run one by one: a call repeated after a stop must not run the first of them again.
    same = body.id if body.id is not None or ask.idempotency_key is None else f"key/{ask.idempotency_key}"
    update, runs = publish_outside(ask.world, ask.namespace, dataset, same)
    made = [{"jobId": run.key.job.name, "runId": run.key.run_id} for run in runs]
    return answer(202, {"id": update.id, "runs": made})


def _known(ask: Asked, name: str) -> Dataset:
    found = dataset_of(ask.world, ask.namespace, name)
    if found is None:
        raise NotFound(f"There is no dataset {name}: no job publishes it or subscribes to it.")
    return found


def _shape(dataset: Dataset) -> dict[str, Any]:
    return {
        "id": dataset.name,
        "publishers": [{"jobId": job, "taskId": task} for job, task in dataset.publishers],
        "subscribers": [{"jobId": job, "quantity": str(quantity)} for job, quantity in dataset.subscribers],
        "updatedAt": dataset.updated_at,
        "updateId": dataset.update_id,
    }
