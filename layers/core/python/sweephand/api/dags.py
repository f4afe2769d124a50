"""The same resources under the names that some clients expect."""

from __future__ import annotations

from typing import Annotated, Final

from aws_lambda_powertools.event_handler.openapi.params import Body
from aws_lambda_powertools.event_handler.router import APIGatewayRouter

from sweephand.api import bodies, jobs, runs
from sweephand.api.asked import Answer, answer, asked
from sweephand.api.schemas import Cursor, Definition, InPath, Limit, says

router: Final = APIGatewayRouter()  # type: ignore[no-untyped-call]

_TAG: Final = "dags"


@router.post("/dags", **says("createDag", "Create a job", {201: "Job"}, tag=_TAG))
def create_dag(body: Annotated[Definition, Body()]) -> Answer:
    return jobs.create_job(body)


@router.get("/dags", **says("listDags", "List jobs by name", {200: "JobPage"}, tag=_TAG))
def list_dags(limit: Limit = 100, cursor: Cursor = None) -> Answer:
    return jobs.list_jobs(limit=limit, cursor=cursor)


@router.post("/dags/<dag>/runs", **says("startDagRun", "Run a job now", {202: "Triggered"}, tag=_TAG))
def start_dag_run(dag: InPath, body: Annotated[bodies.TriggerBody, Body()]) -> Answer:
    return answer(202, jobs.triggered(asked(), dag, body))


@router.get("/dags/<dag>/runs/<run>", **says("getDagRun", "Show a run", {200: "Run"}, tag=_TAG))
def get_dag_run(dag: InPath, run: InPath) -> Answer:
    return runs.get_run(dag, run)
