"""What schemathesis needs to know: values of our formats, a place to call, and what JSON Schema cannot say."""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, Final, Self
from zlib import crc32

import schemathesis
from hypothesis import strategies as st

from sweephand.api.app import Api
from sweephand.api.asked import Patience
from sweephand.api.sessions import Issuer
from sweephand.clock import SystemClock, SystemDice
from sweephand.domain.access import EVERYWHERE, Role
from sweephand.domain.zips import digest_of, zipped
from sweephand.embedded import PACE, open_stores
from sweephand.engine.issue import issue
from sweephand.ports import World
from tests.api.client import ISSUER, Client, Tasks, issuer_key

JSON = dict[str, Any]

SOAK: Final = os.environ.get("SWEEPHAND_SOAK") == "1"
_DEFINING: Final = ["createJob", "createDag", "putJob", "planJob", "putTemplate"]

# 412 and 428 depend on the version in force, as 409 does on the state: a generated If-Match cannot know it. And 403 is
# the answer to a namespace that is not there.
_TO_GOOD_REQUESTS: Final = ["2xx", "403", "404", "409", "412", "428"]
# A bad request may be too long, or wrong about the state as well; it never succeeds, and never breaks anything.
_TO_BAD_REQUESTS: Final = ["400", "403", "404", "405", "409", "413", "414", "415", "428", "431"]

CONFIG: Final = schemathesis.Config.from_dict(
    {
        **({} if SOAK else {"seed": 1}),
        "checks": {
            "positive_data_acceptance": {"expected-statuses": _TO_GOOD_REQUESTS},
            "negative_data_rejection": {"expected-statuses": _TO_BAD_REQUESTS},
        },
        "generation": {"with-security-parameters": False},
        # Every limit of every field of a definition: thousands of requests each, so that they are left to the long run.
        "operations": [{"include-operation-id": _DEFINING, "phases": {"coverage": {"enabled": SOAK}}}],
    }
)


def register_formats() -> None:
    """Values of the formats that the document names, which only we can make."""
    schemathesis.openapi.format("cron", _cron())
    schemathesis.openapi.format("timezone", st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Asia/Tokyo"]))
    schemathesis.openapi.format("period", _period())
    schemathesis.openapi.format(
        "command-line", st.sampled_from(["true", "echo 'a b'", "python report.py --all", 'say "x"'])
    )
    schemathesis.openapi.format(
        "web-address", st.sampled_from(["https://example.org", "http://example.org:8080/a?b=c#d", "${params.url}"])
    )
    schemathesis.openapi.format("condition", st.sampled_from(["true", "${params.n} > 3", "'a' in ['a', 'b']"]))
    schemathesis.openapi.format("list-template", st.sampled_from(["${params.list}", "${params.a.b}"]))
    schemathesis.openapi.format("date-time", _instant())


def _cron() -> st.SearchStrategy[str]:
    minute = st.integers(0, 59).map(str) | st.sampled_from(["*", "*/15", "0-30/5", "H"])
    hour = st.integers(0, 23).map(str) | st.sampled_from(["*", "8-18"])
    day = st.integers(1, 28).map(str) | st.sampled_from(["*", "L"])
    month = st.integers(1, 12).map(str) | st.sampled_from(["*", "jan,jul"])
    weekday = st.integers(0, 7).map(str) | st.sampled_from(["*", "mon-fri", "fri#2"])
    five = st.tuples(minute, hour, day, month, weekday).map(" ".join)
    others = ["@daily", "@hourly", "30 0 6 * * *", "rate(5 minutes)", "cron(0 6 ? * MON-FRI *)"]
    return five | st.sampled_from(others)


def _period() -> st.SearchStrategy[str]:
    """Within the bounds of every field: whole seconds, up to a day."""
    return st.tuples(st.integers(1, 59), st.sampled_from("smh")).map(
        lambda pair: f"{min(pair[0], 23)}{pair[1]}"
    ) | st.just("1h30m")


def _instant() -> st.SearchStrategy[str]:
    """Within what every field takes: whole seconds, since 1970, and not near the end of years."""
    times = st.datetimes(datetime(1970, 1, 2), datetime(8999, 12, 30))  # noqa: DTZ001 - UTC below
    return times.map(lambda at: at.replace(microsecond=0, tzinfo=UTC).isoformat().replace("+00:00", "Z"))


class Place:
    """The API over stores in memory, with a few things in it."""

    def __init__(self) -> None:
        clock = SystemClock()
        self._stores = open_stores(None, clock=clock)
        self.world = World.over(self._stores, clock=clock, dice=SystemDice(), target=Tasks(), pace=PACE, owner="test")
        self.api = Api(self.world, issuer=Issuer(issuer_key(), url=ISSUER, clock=clock))
        self.token = issue(self.world, namespace=EVERYWHERE, role=Role.ADMIN, name="admin", actor="test").text
        self._admin = Client(self.api, self.token)
        self.known: dict[str, str] = {}
        self._is_whole = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stores.close()

    def changed(self) -> None:
        """Something may be missing now."""
        self._is_whole = False

    def restore(self) -> None:
        """Put back what a call took away."""
        if self._is_whole:
            return
        self._is_whole = True
        ask = self._admin
        ask.put("/calendars/work", {"closed": ["2026-12-25"]}, If_None_Match="*")
        ask.put("/pools/small", {"slots": 2}, If_None_Match="*")
        ask.put("/templates/shell", {"command": "true", "retries": 1}, If_None_Match="*")
        ask.put("/namespaces/team", {})
        ask.put(f"/code/{DIGEST}", {"content": CONTENT})
        ask.put("/namespaces/team/members/ann", {"role": "viewer"})
        ask.put("/jobs/nightly", {"schedule": "0 0 * * *", "command": "true"}, If_None_Match="*")
        ask.put("/jobs/remote", {"run": {"external": {}}}, If_None_Match="*")
        if not self.known:
            run = ask.post("/jobs/nightly/trigger").json["runId"]
            ask.post("/jobs/remote/trigger")
            self.known = {
                "job": "nightly",
                "dag": "nightly",
                "run": run,
                "task": "main",
                "ns": "team",
                "member": "ann",
                "letter": f"nightly:{run}",
                "sha256": DIGEST,
            }

    def named(self, parameter: str, path: str) -> str | None:
        """Something that is there and that a parameter of this name may mean."""
        shared = {"/calendars": "work", "/pools": "small", "/templates": "shell"}
        if parameter == "id":
            return next((name for place, name in shared.items() if path.startswith(place)), None)
        return self.known.get(parameter)


class Switchboard:
    """Behind one server, the place whose turn it is."""

    def __init__(self) -> None:
        self.place: Place | None = None

    def authorize(self, event: JSON) -> Mapping[str, Any]:
        assert self.place is not None
        return self.place.api.authorize(event)

    def handle(self, event: JSON, *, patience: Patience | None = None) -> Mapping[str, Any]:
        assert self.place is not None
        return self.place.api.handle(event, patience=patience)


@cache
def described() -> JSON:
    """The document as it is served."""
    with Place() as place:
        document: JSON = Client(place.api, place.token).get("/openapi.json").json
        return document


def adapted(case: schemathesis.Case[Any], place: Place) -> None:
    """Point three of four parameters at what is there, and mend what the schema cannot say of a good request."""
    assert case.meta is not None
    if case.meta.generation.mode.is_negative:
        return
    for name, value in case.path_parameters.items():
        there = place.named(name, case.path)
        if there is not None and crc32(str(value).encode()) % 4:
            case.path_parameters[name] = there
    if crc32(str(case.headers.get("X-Namespace")).encode()) % 4:
        case.headers.pop("X-Namespace", None)
    # A cursor comes from a list, and nowhere else.
    for cursor in ("cursor", "after"):
        case.query.pop(cursor, None)
    call = case.operation.definition.raw["operationId"]
    if call in _SHORT:
        _shorten(case.query)
    if isinstance(case.body, dict):
        case.body.pop("cursor", None)
        _mend(case.body, call, case.path_parameters)


_PACK: Final = zipped({"m.py": b"def f(): ...\n"})
DIGEST: Final = digest_of(_PACK)
CONTENT: Final = b64encode(_PACK).decode()

_SHORT: Final = frozenset({"listRuns", "listDeadLetters", "changeRuns"})
"""These look at a month at most."""
_LATER: Final = "8999-12-31T00:00:00Z"


def _mend(body: JSON, call: str, path_parameters: JSON) -> None:
    match call:
        case "createJob" | "createDag" | "putJob" | "planJob" | "putTemplate":
            _mend_definition(body)
            if body.get("name") is not None and call == "putJob":
                body["name"] = path_parameters["job"]
        case "putCalendar":
            body.pop("id", None)
            if "opened" in body:
                body["opened"] = [day for day in body["opened"] if day not in body.get("closed", ())]
        case "putCode":
            path_parameters["sha256"], body["content"] = DIGEST, CONTENT
        case "changeRuns":
            body.pop("cursor", None)
            _shorten(body["filter"])
        case "redriveDeadLetters":
            body.pop("cursor", None)
            _shorten(body)
        case "createBackfill":
            body["from"], body["to"] = "2020-01-01T00:00:00Z", "2020-01-02T00:00:00Z"  # a day that has passed
        case "rerunRun" if body.get("task") is not None:
            body["task"] = "main"
        case "leaseWork":
            body.pop("waitSeconds", None)  # nobody waits for work that does not come
        case "issueToken" if body.get("expiresAt") is not None:
            body["expiresAt"] = _LATER
        case "pauseNamespace" | "resumeNamespace":
            body.pop("cursor", None)
        case _:
            pass


def _mend_definition(body: JSON) -> None:
    """Names of what is there, times in their order, and no text that no definition may have."""
    for field, value in body.items():
        body[field] = _plain(value)
    _replace(body, "template", "shell")
    if "with" in body:
        body["with"] = None  # that template has no parameters
    for parameter in (body.get("parameters") or {}).values():
        parameter |= {"default": None, "enum": None}  # which must be of the type
    _replace(body.get("concurrency"), "pool", "small")
    for one in [body, *(body.get("tasks") or [])]:
        _replace(one.get("retry"), "maxDelay", "7d")
        step = one.get("run")
        if isinstance(step, dict) and (step.get("sensor") or {}).get("s3") is not None:
            step["sensor"] = {"http": {"url": "https://example.org/"}}  # nothing here can look at S3
        _replace(one.get("run"), "code", DIGEST)
    _mend_tasks(body)
    schedule = body.get("schedule")
    _replace(schedule, "calendar", "work")
    if isinstance(schedule, dict):
        _replace(schedule, "datasets", ["nobody-publishes-it"])
        _order(schedule, "startAt", "endAt")
        for blackout in schedule.get("blackouts") or []:
            _order(blackout, "from", "to")


def _mend_tasks(body: JSON) -> None:
    """A graph: ids of their own, needs that come before, and nothing that goes only with something else."""
    tasks = body.get("tasks") or []
    del tasks[5:]
    for n, one in enumerate(tasks):
        one["id"] = f"t{n}"
        if one.get("needs") is not None:
            one["needs"] = [f"t{m}" for m in range(min(n, len(one["needs"])))]
        for field in ("branch", "pool", "slots", "publishes"):
            one.pop(field, None)
        _replace(one, "if", "${params.n} > 0")
        _replace(one, "when", "all_success")
        _replace(one.get("map"), "over", "${params.list}")


def _replace(within: Any, field: str, value: Any) -> None:
    if isinstance(within, dict) and within.get(field) is not None:
        within[field] = value


def _order(within: JSON, first: str, last: str) -> None:
    if within.get(first) is not None and within.get(last) is not None and within[first] >= within[last]:
        within[last] = _LATER


def _shorten(within: JSON) -> None:
    """A time to begin at, and no other that may be far from it: an hour is asked for."""
    if within.get("from") is not None:
        begin = datetime.fromisoformat(within["from"].upper())
        within["to"] = (begin + timedelta(hours=1)).isoformat()


def _plain(value: Any) -> Any:
    """The value without the character U+0000 and numbers of more than 63 bits."""
    match value:
        case str():
            return value.replace("\0", "")
        case bool():
            return value
        case int():
            return max(min(value, 2**63 - 1), -(2**63) + 1)
        case list():
            return [_plain(one) for one in value]
        case dict():
            return {_plain(name): _plain(one) for name, one in value.items()}
        case _:
            return value
