"""The tasks of a run, and what people do to them."""

from __future__ import annotations

from typing import Annotated, Final

from aws_lambda_powertools.event_handler.openapi.params import Body
from aws_lambda_powertools.event_handler.router import APIGatewayRouter

from sweephand.api import bodies
from sweephand.api.asked import Answer, Asked, answer, asked
from sweephand.api.cursors import decode_cursor, encode_cursor
from sweephand.api.runs import found_run
from sweephand.api.schemas import Cursor, InPath, Limit, TaskInPath, says
from sweephand.api.shapes import page, task_shape, why_shape
from sweephand.domain.access import PrincipalKind, Role
from sweephand.domain.task import TaskState
from sweephand.engine.hasten import retry_now
from sweephand.engine.mark import Verdict, decide, mark
from sweephand.engine.overview import TaskSeen, overview, overview_of
from sweephand.engine.whereabouts import APPROVAL
from sweephand.engine.why_task import why_task
from sweephand.errors import Conflict, Refused

router: Final = APIGatewayRouter()  # type: ignore[no-untyped-call]

_TAG: Final = "runs"
_ONE: Final = "/jobs/<job>/runs/<run>/tasks/<task>"
_ROLES: Final = frozenset(str(role) for role in Role)


@router.get(
    "/jobs/<job>/runs/<run>/tasks",
    **says("listTasks", "List a run's tasks, and the instances of mapped ones", {200: "TaskRunPage"}, tag=_TAG),
)
def list_tasks(job: InPath, run: InPath, limit: Limit = 100, cursor: Cursor = None) -> Answer:
    ask = asked()
    found = found_run(ask, job, run)
    bound_to = ("tasks", found.key)
    position = decode_cursor(cursor, bound_to, length=1)
    shown, more = overview_of(ask.world, found).page(after=position[0] if position else None, limit=limit)
    following = encode_cursor([shown[-1].name], bound_to) if more else None
    return answer(200, page([task_shape(one) for one in shown], following))


@router.get(f"{_ONE}/why", **says("explainTask", "Why a task does not go on", {200: "Why"}, tag=_TAG))
def explain_task(job: InPath, run: InPath, task: TaskInPath) -> Answer:
    ask = asked()
    return answer(200, why_shape(why_task(ask.world, ask.run(job, run), task)))


@router.post(
    f"{_ONE}/mark",
    **says("markTask", "End a task that has not ended, as succeeded, failed or skipped", {200: "TaskRun"}, tag=_TAG),
)
def mark_task(job: InPath, run: InPath, task: TaskInPath, body: Annotated[bodies.MarkBody, Body()]) -> Answer:
    ask = asked()
    found = _found(ask, job, run, task)
    if found.definition.kind == APPROVAL and body.state != "failed":
        _check_asked(ask, found)
    _record(ask, "task.mark", job, run, task, note=body.note, state=body.state)
    mark(ask.world, ask.run(job, run), task, Verdict(TaskState(body.state), ask.caller.actor, body.note))
    return _shown(ask, job, run, task)


@router.post(f"{_ONE}/cancel", **says("cancelTask", "End a task; the others go on", {200: "TaskRun"}, tag=_TAG))
def cancel_task(job: InPath, run: InPath, task: TaskInPath, body: Annotated[bodies.NoteBody, Body()]) -> Answer:
    ask = asked()
    _found(ask, job, run, task)
    _record(ask, "task.cancel", job, run, task, note=body.note)
    mark(ask.world, ask.run(job, run), task, Verdict(TaskState.CANCELLED, ask.caller.actor, body.note))
    return _shown(ask, job, run, task)


@router.post(
    f"{_ONE}/retry",
    **says("retryTask", "Begin a task's next attempt, or its next look, at once", {200: "TaskRun"}, tag=_TAG),
)
def retry_task(job: InPath, run: InPath, task: TaskInPath, body: Annotated[bodies.NoteBody, Body()]) -> Answer:
    ask = asked()
    found = _found(ask, job, run, task)
    if found.run is None:
        raise Conflict(f"Task '{task}' is {found.state}: it has no attempt to repeat.")
    _record(ask, "task.retry", job, run, task, note=body.note)
    retry_now(ask.world, found.run.key)
    return _shown(ask, job, run, task)


@router.post(f"{_ONE}/approve", **says("approveTask", "Say yes to a task that asks", {200: "TaskRun"}, tag=_TAG))
def approve_task(job: InPath, run: InPath, task: TaskInPath, body: Annotated[bodies.NoteBody, Body()]) -> Answer:
    return _decided(job, run, task, body.note, approved=True)


@router.post(f"{_ONE}/reject", **says("rejectTask", "Say no to a task that asks", {200: "TaskRun"}, tag=_TAG))
def reject_task(job: InPath, run: InPath, task: TaskInPath, body: Annotated[bodies.NoteBody, Body()]) -> Answer:
    return _decided(job, run, task, body.note, approved=False)


def _decided(job: str, run: str, task: str, note: str, *, approved: bool) -> Answer:
    ask = asked()
    found = _found(ask, job, run, task)
    _check_asked(ask, found)
    _record(ask, "task.approve" if approved else "task.reject", job, run, task, note=note)
    decide(ask.world, ask.run(job, run), task, approved=approved, actor=ask.caller.actor, note=note)
    return _shown(ask, job, run, task)


def _check_asked(ask: Asked, found: TaskSeen) -> None:
    """Refuse those whom the task does not ask; where it names nobody, it asks operators."""
    by = found.definition.spec.get("by") or [str(Role.OPERATOR)]
    caller = ask.caller
    roles = [Role(one) for one in by if one in _ROLES]
    is_named = caller.kind is PrincipalKind.USER and caller.id in by
    if not is_named and not any(caller.role.covers(role) for role in roles):
        raise Refused(f"Task '{found.name}' asks {', '.join(by)}, and nobody else.")


def _found(ask: Asked, job: str, run: str, task: str) -> TaskSeen:
    return overview(ask.world, ask.run(job, run)).found(task)


def _shown(ask: Asked, job: str, run: str, task: str) -> Answer:
    return answer(200, task_shape(_found(ask, job, run, task)))


def _record(ask: Asked, action: str, job: str, run: str, task: str, *, note: str, state: str | None = None) -> None:
    after = {"state": state} if state else None
    ask.record(action, f"jobs/{job}/runs/{run}/tasks/{task}", note=note, after=after)
