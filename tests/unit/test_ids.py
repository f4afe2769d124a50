"""Names and keys: what may name a thing, and that ids of runs sort by time."""

from __future__ import annotations

import string
from collections import Counter
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweephand.domain.ids import (
    JobKey,
    JobName,
    Namespace,
    RunId,
    RunKey,
    check_name,
    instant_of,
    run_id_of_fire,
    run_id_of_rerun,
    run_id_of_trigger,
    spread,
)
from sweephand.errors import InvalidInput

names = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}", fullmatch=True)
tokens = st.text(string.ascii_letters + string.digits, min_size=1, max_size=26)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
seconds = st.integers(0, 253_000_000_000).map(lambda count: EPOCH + timedelta(seconds=count))


@pytest.mark.parametrize(
    "text",
    [
        *["", ".a", "-a", "_a", "a" * 129, "a/b", "a#b", "a|b", "a b", "a\n", "a\0", "a\u2028", "ä", "١", "ａ"],
        *["../a", "a%2Fb", "a:b", "a'b", 'a"b', "a;b", "a\\b", "${a}", "a*", "\ud800"],
    ],
    ids=ascii,
)
def test_whatever_could_break_out_of_a_key_names_nothing(text: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        check_name(text, path="tasks[1].id")
    assert refused.value.errors[0][0] == "tasks[1].id"


@pytest.mark.parametrize("value", [None, True, 5, b"a", ["a"], {"a": 1}], ids=repr)
def test_only_text_names_something(value: object) -> None:
    with pytest.raises(InvalidInput):
        check_name(value, path="name")


@given(st.text())
def test_a_name_is_refused_or_has_only_safe_characters(text: str) -> None:
    safe = set(string.ascii_letters + string.digits + "._-")
    try:
        assert set(check_name(text, path="name")) <= safe
    except InvalidInput:
        assert not text or not set(text) <= safe or text[0] in "._-" or len(text) > 128


@given(names, names, names)
def test_keys_come_back_from_their_text(namespace: str, job: str, run: str) -> None:
    job_key = JobKey(Namespace(check_name(namespace, path="a")), JobName(check_name(job, path="b")))
    run_key = RunKey(job_key, RunId(run))
    assert JobKey.of(str(job_key)) == job_key
    assert RunKey.of(str(run_key)) == run_key
    task_key = run_key.of_task("load[3]")
    assert RunKey.of(str(task_key)) == RunKey.at(*task_key.place) == task_key
    assert task_key.whole == run_key.whole == run_key


@pytest.mark.parametrize("text", ["", "a", "a/b/c/d/e"])
def test_a_text_with_another_number_of_parts_is_no_key(text: str) -> None:
    for read in (JobKey.of, RunKey.of):
        with pytest.raises(ValueError, match="unpack"):
            read(text)


@given(seconds, seconds, tokens, tokens, st.integers(1, 99))
def test_ids_of_runs_sort_by_their_second(
    one: datetime, other: datetime, token: str, other_token: str, generation: int
) -> None:
    def ids(instant: datetime, token: str) -> list[RunId]:
        fire = run_id_of_fire(instant)
        trigger = run_id_of_trigger(instant, token)
        return [fire, run_id_of_rerun(fire, generation), trigger, run_id_of_rerun(trigger, generation)]

    for left in ids(one, token):
        assert instant_of(left) == one
        assert check_name(left, path="run") == left
        for right in ids(other, other_token):
            if one != other:
                assert (left < right) == (one < other)


def test_the_id_of_a_fire_does_not_depend_on_the_zone_that_it_is_given_in() -> None:
    berlin = datetime(2026, 11, 15, 7, tzinfo=timezone(timedelta(hours=1)))
    assert run_id_of_fire(berlin) == "20261115T060000Z"
    assert run_id_of_trigger(berlin, "abc") == "20261115T060000Z-abc"


def test_a_rerun_of_a_rerun_is_the_next_generation_of_the_original() -> None:
    first = run_id_of_rerun(RunId("20261115T060000Z"), 1)
    assert (first, run_id_of_rerun(first, 2)) == ("20261115T060000Z.1", "20261115T060000Z.2")


@given(st.text(), st.integers(1, 1000))
def test_a_bucket_is_one_of_the_buckets(text: str, buckets: int) -> None:
    assert 0 <= spread(text, buckets) < buckets


def test_buckets_never_move_and_fill_evenly() -> None:
    assert [spread(text, 1000) for text in ("", "default/report", "ä")] == [876, 488, 529]
    filled = Counter(spread(f"default/job-{n}", 8) for n in range(8000))
    assert max(filled.values()) < 1150
