"""Sensors that look at a bucket, on moto: what is there, what is not yet, and what nobody may look at."""

from __future__ import annotations

from typing import Any

import pytest

from sweephand.domain.kinds import read_step
from sweephand.domain.targets import Targets
from sweephand.errors import InvalidInput
from sweephand.local.cloud.account import refusal
from sweephand.messages import Again
from sweephand.operators import Operators
from tests.moto_world import Fault, timed_out
from tests.operators.aws.account import LISTED, Neighbourhood, a_call, client, output_of, permanent, transient


def look(there: Operators, **options: Any) -> Any:
    return there.execute(a_call({"sensor": {"s3": {"bucket": "inbox", **options}}}, day="2026-10-03"))


def put(key: str, body: bytes = b"hello") -> None:
    client("s3").put_object(Bucket="inbox", Key=key, Body=body)


def test_a_key_is_found_with_what_is_known_of_it(place: Neighbourhood, there: Operators) -> None:
    put("orders/2026-10-03.csv")
    put("orders/2026-10-03.csv.part")
    found = output_of(look(there, key="orders/${params.day}.csv"))
    assert (found["bucket"], found["key"], found["size"]) == ("inbox", "orders/2026-10-03.csv", 5)
    assert found["etag"] == "5d41402abc4b2a76b9719d911017c592"
    assert found["lastModified"].endswith("Z")
    assert [call.operation for call in place.calls] == ["ListObjectsV2"]


def test_a_longer_key_is_not_the_key(place: Neighbourhood, there: Operators) -> None:
    put("orders/a.csv.part")
    seen = look(there, key="orders/a.csv")
    assert isinstance(seen, Again)
    assert seen.reason == "s3://inbox has no key orders/a.csv"


@pytest.mark.parametrize(("least", "comes"), [(None, True), (5, True), (6, False)])
def test_an_object_can_be_asked_for_its_size(
    place: Neighbourhood, there: Operators, least: int | None, comes: bool
) -> None:
    put("orders/a.csv")
    assert isinstance(look(there, key="orders/a.csv", minBytes=least), Again) != comes


def test_a_prefix_finds_the_first_that_is_large_enough_and_no_folder(place: Neighbourhood, there: Operators) -> None:
    put("orders/", b"")
    assert isinstance(look(there, prefix="orders/"), Again)
    put("orders/a", b"")
    put("orders/b", b"xx")
    assert output_of(look(there, prefix="orders/"))["key"] == "orders/a"
    assert output_of(look(there, prefix="orders/", minBytes=1))["key"] == "orders/b"


@pytest.mark.parametrize("code", ["AccessDenied", "NoSuchBucket"])
def test_what_no_look_will_mend_fails_for_good(place: Neighbourhood, there: Operators, code: str) -> None:
    place.faults = [Fault(refusal(code, "ListObjectsV2", status=403))]
    assert permanent(look(there, key="orders/a.csv"))[0] == code


@pytest.mark.parametrize("fault", [Fault(refusal("SlowDown", "ListObjectsV2", status=503)), timed_out()])
def test_what_may_pass_is_told_apart(place: Neighbourhood, there: Operators, fault: Fault) -> None:
    place.faults = [fault]
    transient(look(there, key="orders/a.csv"))


@pytest.mark.parametrize(
    "s3",
    [
        {"bucket": "outbox", "key": "orders/a"},
        {"bucket": "inbox", "key": "bills/a"},
        {"bucket": "inbox", "prefix": "o"},
        {"bucket": "sweephand-artifacts", "key": "orders/a"},
    ],
)
def test_what_is_not_listed_is_refused_when_it_is_saved_and_when_it_runs(
    place: Neighbourhood, there: Operators, s3: dict[str, str]
) -> None:
    kind, spec = read_step({"sensor": {"s3": s3}}, "run")
    with pytest.raises(InvalidInput) as refused:
        LISTED.check_step(kind, spec, "run.sensor")
    assert refused.value.path == "run.sensor.s3"
    hidden = {name: "${params." + name + "}" for name in s3}
    error, message = permanent(there.execute(a_call({"sensor": {"s3": hidden}}, **dict[str, Any](s3))))
    assert error == "InvalidInput"
    assert "from here" in message or "belongs to Sweephand" in message
    assert place.calls == []


def test_an_entry_without_keys_is_of_the_whole_bucket() -> None:
    whole = Targets.of(["arn:aws:s3:::inbox"], own="sweephand")
    whole.check_keys("inbox", "any/thing", "s3")
    with pytest.raises(InvalidInput, match="arn:aws:s3:::outbox/\\*"):
        whole.check_keys("outbox", "any/thing", "s3")


@pytest.mark.parametrize("entry", ["arn:aws:s3:::*", "arn:aws:s3:::in*/a", "arn:aws:s3:eu-west-1:1:inbox"])
def test_a_bucket_is_always_named(entry: str) -> None:
    with pytest.raises(InvalidInput):
        Targets.of([entry])
