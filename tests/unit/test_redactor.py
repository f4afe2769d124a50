"""Values of secrets are taken out of what tasks say, in whatever form they are likely to be said."""

from __future__ import annotations

import json
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweephand.secrets import MARK, Redactor, Values

VALUE = 'pä$$ "w0rd"/+\\?&='
VALUES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="•"), min_size=4, max_size=40)


@pytest.mark.parametrize(
    "said",
    [
        VALUE,
        json.dumps(VALUE)[1:-1],
        json.dumps(VALUE, ensure_ascii=False)[1:-1],
        repr(VALUE)[1:-1],
        quote(VALUE),
        quote(VALUE, safe=""),
        quote_plus(VALUE),
        b64encode(VALUE.encode()).decode().rstrip("="),
        urlsafe_b64encode(VALUE.encode()).decode().rstrip("="),
    ],
)
def test_a_value_is_replaced_in_every_form(said: str) -> None:
    redact = Redactor([VALUE])
    assert redact(said) == MARK
    assert redact(f"a {said}{said} z") == f"a {MARK}{MARK} z"


@pytest.mark.parametrize("user", ["", "u", "us", "use", "user"])
def test_inside_of_base64_nothing_is_left_of_it_but_its_edges(user: str) -> None:
    header = b64encode(f"{user}:hunter2-and-more:x".encode()).decode()
    said = Redactor(["hunter2-and-more"])(header)
    assert MARK in said
    assert len(said) - len(MARK) <= len(header) - len(b64encode(b"hunter2-and-more").decode().rstrip("=")) + 4


@given(st.lists(VALUES, min_size=1, max_size=4), st.lists(st.text(max_size=20), max_size=5))
def test_no_value_is_left_whatever_is_around_it(values: list[str], around: list[str]) -> None:
    redact = Redactor(values)
    said = redact("".join(f"{words}{value}" for words, value in zip(around, values * 5, strict=False)))
    assert not any(value in said.replace(MARK, "") and value in said for value in values)


def test_values_that_overlap_leave_nothing_between_them() -> None:
    assert Redactor(["abcdef", "defghi"])("xabcdefghiy") == f"x{MARK}y"
    assert Redactor(["abcd", "xabcdy"])("1xabcdy2") == f"1{MARK}2"


def test_each_line_of_a_long_value_is_one() -> None:
    key = "-----BEGIN KEY-----\nMIIEvQIBADANBg\nkqhkiG9w0BAQEF\n--\n"
    redact = Redactor([key])
    assert redact(key) == MARK
    assert redact("MIIEvQIBADANBg") == MARK
    assert redact("--") == "--"


@pytest.mark.parametrize("width", [64, 76])
@pytest.mark.parametrize("after", ["", "\n"])
def test_base64_that_is_broken_into_lines_is_recognised_line_by_line(width: int, after: str) -> None:
    value = "".join(chr(ord("!") + n * n % 89) for n in range(200))
    encoded = b64encode((value + after).encode()).decode().rstrip("=")
    lines = [encoded[at : at + width] for at in range(0, len(encoded), width)]
    said = Redactor([value])("\n".join(lines))
    assert [line.replace(MARK, "") for line in said.split("\n")][:-1] == [""] * (len(lines) - 1)
    assert len(said.split("\n")[-1].replace(MARK, "")) <= 2


@pytest.mark.parametrize("encode", [quote, quote_plus, lambda text: b64encode(text.encode()).decode().rstrip("=")])
def test_a_value_with_a_line_break_at_its_end_is_recognised_without_it(encode: Callable[[str], str]) -> None:
    assert Redactor(["hunter2/and more\n"])(encode("hunter2/and more")) == MARK


def test_where_a_text_was_cut_the_rest_of_a_value_goes_too() -> None:
    redact = Redactor(["hunter2-and-more"])
    assert redact("word: hunter2-an", cut_after=True) == f"word: {MARK}"
    assert redact("nd-more, he said", cut_before=True) == f"{MARK}, he said"
    assert redact("2-and-mo", cut_before=True, cut_after=True) == MARK
    assert redact("word: hunter2-an") == "word: hunter2-an"
    large = "".join(chr(ord("a") + n * n % 23) for n in range(65_536))
    assert Redactor([large])(large[-2000:] + ".", cut_before=True) == f"{MARK}."


def test_a_document_is_redacted_in_texts_names_and_numbers() -> None:
    redact = Redactor(["hunter2!", "123456"])
    said = {"hunter2!": ["x hunter2!", 123456, 5123456.5, 12, True, None, {"deep": "aHVudGVyMiE="}]}
    assert redact.document(said) == {MARK: [f"x {MARK}", MARK, MARK, 12, True, None, {"deep": f"{MARK}="}]}


def test_without_values_everything_stays_as_it_is() -> None:
    document = {"a": ("b",)}
    assert not Redactor()
    assert not Redactor(["abc"])  # it would be found everywhere
    assert Redactor().document(document) is document
    assert Redactor()("abc") == "abc"


def test_values_are_in_no_representation() -> None:
    assert repr(Values({"DB": "hunter2!"})) == "Values(DB)"
