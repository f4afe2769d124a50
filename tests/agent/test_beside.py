"""What an agent hears beside a container: its lines over a socket, and its end from the metadata of the task."""

from __future__ import annotations

import socket
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

from sweephand.agent.beside import Seen, seen_of
from sweephand.agent.fluent import MESSAGE_BYTES_MAX, Printed, Unreadable, messages
from sweephand.agent.place import content_of, document_of
from sweephand.clock import SystemClock
from sweephand.logs import Line
from sweephand.operators.lines import Lines
from sweephand.secrets import Redactor
from tests.local.waiting import until


def a_line(log: str, source: str = "stdout", **more: str) -> bytes:
    at = msgspec.msgpack.Ext(0, b"\0" * 8)  # as the driver writes a time with its fraction
    return msgspec.msgpack.encode(["task-firelens", at, {"source": source, "log": log, **more}, {"chunk": "a"}])


def test_messages_come_whole_however_they_are_cut() -> None:
    values: list[Any] = [a_line("x" * size) for size in (0, 31, 32, 255, 256, 65_535, 65_536)]
    values += [msgspec.msgpack.encode(one) for one in (None, True, 1, -1, 2**40, 1.5, b"x" * 300, [1] * 70_000, "é")]
    values.append(msgspec.msgpack.encode({str(n): n for n in range(20)}))
    wanted = [msgspec.msgpack.decode(one) for one in values]
    whole = b"".join(values)
    for step in (1_000_000, 40_001, 4_093):
        buffer, found = bytearray(), []
        for at in range(0, len(whole), step):
            buffer += whole[at : at + step]
            found += list(messages(buffer))
        assert (found, buffer) == (wanted, bytearray())


@pytest.mark.parametrize("wrong", [b"\xc1", b"\x91" * 50, b"\xdb\xff\xff\xff\xff" + b"x" * (MESSAGE_BYTES_MAX + 1)])
def test_what_is_no_message_is_refused(wrong: bytes) -> None:
    with pytest.raises(Unreadable):
        list(messages(bytearray(wrong)))


def heard(folder: Path, sent: Sequence[bytes], redact: Redactor | None = None) -> tuple[list[Line], list[str], str]:
    """The lines, what was noted, and the end of what was printed."""
    lines: list[Line] = []
    notes: list[str] = []
    taken = Lines(lines.extend, clock=SystemClock(), redact=redact or Redactor())
    with Printed(folder / "s", taken, note=notes.append) as printed:
        for one in sent:
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(str(folder / "s"))
                client.sendall(one)
    return lines, notes, printed.out.text()


def test_lines_of_both_streams_are_heard_in_order_and_those_in_parts_are_one(tmp_path: Path) -> None:
    sent = [
        a_line("one") + a_line("aside", "stderr") + a_line("two ", partial_message="true", partial_last="false"),
        a_line("and a half", partial_message="true", partial_last="true") + a_line(""),
    ]
    lines, notes, out = heard(tmp_path, sent)
    assert [(str(line.stream), line.text) for line in lines if line.stream == "stderr"] == [("stderr", "aside")]
    assert [line.text for line in lines if line.stream == "stdout"] == ["one", "two and a half", ""]
    assert (notes, out) == ([], "one\ntwo and a half\n\n")


@pytest.mark.parametrize("size", [1, 40, 300, 70_000])
def test_bytes_that_are_no_text_are_marked_and_what_comes_after_them_is_heard(tmp_path: Path, size: int) -> None:
    torn = a_line("x" * size).replace(b"x" * size, b"\xff" * size)
    lines, notes, _ = heard(tmp_path, [torn + a_line("after")])
    assert lines[0].text.startswith("\N{REPLACEMENT CHARACTER}" * min(size, 1_000))
    assert (lines[1].text, notes) == ("after", [])


def test_a_message_that_is_no_record_and_no_text_is_counted(tmp_path: Path) -> None:
    lines, notes, _ = heard(tmp_path, [b"\x91\xa1\xff" + b"\xa1\xff" + a_line("after")])
    assert ([line.text for line in lines], notes) == (["after"], ["2 lines could not be read."])


def test_secrets_are_taken_out_and_what_cannot_be_read_is_counted(tmp_path: Path) -> None:
    sent = [a_line("it is hunter2-canary"), msgspec.msgpack.encode(["tag"]), b"\xc1"]
    lines, notes, _ = heard(tmp_path, sent, Redactor(["hunter2-canary"]))
    assert "hunter2-canary" not in lines[0].text
    assert notes == ["2 lines could not be read."]


def test_a_container_that_goes_on_printing_does_not_hold_up_the_end(tmp_path: Path) -> None:
    """As one that was cancelled, and that ECS ends after its agent."""
    taken = Lines(lambda _: None, clock=SystemClock(), redact=Redactor())
    printed = Printed(tmp_path / "s", taken, note=lambda _: None)
    over = threading.Event()

    def print_on() -> None:
        with socket.socket(socket.AF_UNIX) as client, suppress(OSError):
            client.connect(str(tmp_path / "s"))
            while not over.is_set():
                client.sendall(a_line("and on") * 100)

    def listen_for_a_while() -> None:
        with printed:
            until(lambda: printed.out.text() != "", within_s=10, what="it is heard")
        over.set()

    thread = threading.Thread(target=listen_for_a_while, daemon=True)
    thread.start()
    printing = threading.Thread(target=print_on, daemon=True)
    printing.start()
    ended = over.wait(20)
    over.set()
    printing.join(10)
    assert ended


def test_the_end_of_the_other_container_is_read_from_the_metadata_of_the_task() -> None:
    agent = {"Name": "agent", "KnownStatus": "RUNNING"}

    def task(status: str, desired: str = "RUNNING", **more: Any) -> dict[str, Any]:
        return {"DesiredStatus": desired, "Containers": [agent, {"Name": "task", "KnownStatus": status, **more}]}

    assert seen_of({}) is None
    assert seen_of({"Containers": [agent]}) is None
    assert seen_of(task("RUNNING")) == Seen(False, None, False)
    assert seen_of(task("STOPPED", ExitCode=3)) == Seen(True, 3, False)
    assert seen_of(task("STOPPED")) == Seen(True, None, False)
    assert seen_of(task("STOPPED", "STOPPED", ExitCode=143)) == Seen(True, 143, True)


@pytest.mark.parametrize("content", [b"", b"text", "é\n".encode(), b"\xff\0\x80", b'{"a": 1}'])
def test_a_checkpoint_is_the_same_file_after_its_way_through_the_api(content: bytes) -> None:
    assert content_of(document_of(content)) == content


@pytest.mark.parametrize(
    ("document", "content"),
    [
        (None, None),
        ({"a": 1}, b'{"a": 1}'),
        ({"base64": "?"}, b'{"base64": "?"}'),
        ({"text": 1}, b'{"text": 1}'),
        (7, b"7"),
    ],
)
def test_what_somebody_else_left_is_its_json(document: Any, content: bytes | None) -> None:
    assert content_of(document) == content
