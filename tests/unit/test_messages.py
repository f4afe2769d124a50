"""Messages: every one comes back as it was, and nothing else is read."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweephand.domain.ids import JobKey, JobName, Namespace, RunId, RunKey
from sweephand.errors import InvalidInput
from sweephand.messages import AttemptRun, Message, SweepShards, decode, encode

names = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,20}", fullmatch=True)
run_keys = st.builds(
    lambda namespace, job, run: RunKey(JobKey(Namespace(namespace), JobName(job)), RunId(run)), names, names, names
)
instants = st.datetimes(timezones=st.just(UTC))
messages: st.SearchStrategy[Message] = st.builds(
    AttemptRun, run_keys, st.none() | instants, st.integers(0, 100)
) | st.builds(SweepShards, st.lists(st.integers(0, 10**6)).map(tuple))


@given(messages)
def test_a_message_arrives_as_it_was_sent(message: Message) -> None:
    assert decode(encode(message)) == message


@given(run_keys, instants)
def test_a_message_is_small_enough_for_any_queue(run: RunKey, timer: datetime) -> None:
    assert len(encode(AttemptRun(run, timer, 3)).encode()) < 1024


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "5",
        "[]",
        "{}",
        "{",
        '"attempt"',
        '{"v":1}',
        '{"v":2,"attempt":"a/b/c"}',
        '{"attempt":"a/b/c"}',
        '{"v":1,"attempt":"a/b"}',
        '{"v":1,"attempt":"a/b/c/d/e"}',
        '{"v":1,"attempt":5}',
        '{"v":1,"attempt":null}',
        '{"v":1,"attempt":"a/b/c","timer":"soon"}',
        '{"v":1,"attempt":"a/b/c","timer":5}',
        '{"v":1,"attempt":"a/b/c","redriven":"often"}',
        '{"v":1,"attempt":"a/b/c","redriven":null}',
        '{"v":1,"sweep":5}',
        '{"v":1,"sweep":["a"]}',
        '{"v":1,"sweep":[1e999]}',
        '{"v":1,"sweep":[NaN]}',
        '{"v":1,"sweep":[[1]]}',
        "[" * 100_000,
    ],
    ids=lambda text: text[:50],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        decode(text)


@given(
    st.recursive(
        st.none() | st.floats() | st.text(),
        lambda inner: (
            st.lists(inner) | st.dictionaries(st.sampled_from(["v", "attempt", "sweep", "timer", "redriven"]), inner)
        ),
    )
)
def test_whatever_arrives_is_a_message_or_a_refusal(body: object) -> None:
    try:
        decode(json.dumps(body))
    except InvalidInput:
        pass  # safe: the refusal is the point; any other exception fails the test
