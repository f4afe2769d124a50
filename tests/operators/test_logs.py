"""What a process prints, on its way to the log: as lines, at once, bounded, and never at the task's expense."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from sweephand.artifacts import Artifact
from sweephand.calls import Call, Outcome, Succeeded
from sweephand.clock import SystemClock
from sweephand.domain.retry import Failure
from sweephand.embedded.artifacts import FileArtifacts
from sweephand.embedded.logs import FileLogs
from sweephand.engine.reveal import redacted
from sweephand.errors import Unavailable
from sweephand.logs import LINE_CHARS_MAX, Line, Log, LogKey, LogPage, Stream
from sweephand.operators import Attempt, Logging, Operators
from sweephand.operators.lines import Lines
from sweephand.operators.place import Place
from sweephand.operators.program import run
from sweephand.operators.record import PENDING_MAX, Record
from sweephand.secrets import Redactor
from tests.local.waiting import until
from tests.operators.calls import RUN, call, command, script

WITHIN_S: Final = 30.0
KEY: Final = LogKey(RUN.key, "main", 1)
CLOCK: Final = SystemClock()


class Logged:
    """Operators with logs in files."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self.logs = FileLogs(folder / "logs", **options)
        self.artifacts = FileArtifacts(folder / "artifacts")
        self.operators = Operators(
            folder / "work",
            logging=Logging(self.logs.open),
            keep=self.artifacts.keep,
            grace=timedelta(seconds=0.2),
        )

    def page(self, *, limit: int = 1000) -> LogPage:
        return self.logs.read(KEY, after=None, limit=limit)

    def lines(self) -> list[tuple[str, str]]:
        return [(str(line.stream), line.text) for line in self.page().lines]


@pytest.fixture
def logged(tmp_path: Path) -> Logged:
    return Logged(tmp_path)


class Split:
    """Lines without a process."""

    def __init__(self, *secrets: str) -> None:
        self.found: list[str] = []
        self.lines = Lines(self._add, clock=CLOCK, redact=Redactor(secrets))

    def _add(self, lines: Sequence[Line]) -> None:
        self.found += [line.text for line in lines]

    def feed(self, *parts: bytes) -> None:
        for part in parts:
            self.lines.feed(Stream.STDOUT, part)


# From bytes to lines.


@pytest.mark.parametrize(
    ("parts", "lines"),
    [
        ([b"a\nb\n"], ["a", "b"]),
        ([b"a", b"b\nc", b"\n"], ["ab", "c"]),
        ([b"\n\na\n"], ["", "", "a"]),
        ([b"a\r\nb\r\n"], ["a", "b"]),
        ([b"caf\xc3", b"\xa9\n"], ["café"]),
        ([b"\xff\xfe\n", b"a\0b\n"], ["��", "a�b"]),
        ([b"half a line"], ["half a line"]),
        ([b""], []),
    ],
)
def test_bytes_become_lines(parts: list[bytes], lines: list[str]) -> None:
    split = Split()
    split.feed(*parts)
    split.lines.end()
    assert split.found == lines


def test_every_way_to_cut_the_bytes_gives_the_same_lines() -> None:
    whole = "one\n\ndeux café \N{PILE OF POO}\n".encode() + b"\xf0\x9f bad\nlast"
    for cut in range(len(whole)):
        split = Split()
        split.feed(whole[:cut], whole[cut:])
        split.lines.end()
        assert split.found == ["one", "", "deux café \N{PILE OF POO}", "� bad", "last"], cut


def test_the_beginning_of_a_line_is_handed_on_when_nothing_more_comes_and_its_end_is_no_line_of_its_own() -> None:
    split = Split()
    split.feed(b"name? caf\xc3")
    assert split.lines.waits
    split.lines.idle()
    assert split.found == ["name? caf"]
    split.feed(b"\xa9\nnext? ")
    split.lines.idle()
    split.feed(b"\n", b"\n")
    assert split.found == ["name? caf", "é", "next? ", ""]


def test_a_line_without_end_takes_little_room_and_says_what_is_left_out() -> None:
    split = Split()
    for _ in range(100):
        split.feed(b"x" * 65_536)
    split.feed(b"\nshort\n")
    long, short = split.found
    assert long.startswith("x" * LINE_CHARS_MAX + " … 6,537,216 bytes are left out")
    assert short == "short"
    split.feed(b"y" * 40_000 + b"\n")
    assert split.found[-1] == "y" * LINE_CHARS_MAX + f" … {40_000 - LINE_CHARS_MAX:,} bytes are left out"


def test_what_is_redacted_is_not_seen_in_part_where_a_line_is_cut() -> None:
    split = Split("S3CRET" * 100)
    split.feed(b"x" * (LINE_CHARS_MAX - 300) + b"S3CRET" * 100 + b"\n")
    assert "S3C" not in split.found[0]


@pytest.mark.parametrize("after", [b"\n", b"\nnext\n", b""])
def test_the_beginning_of_a_secret_whose_end_was_dropped_is_not_seen(after: bytes) -> None:
    secret = "hunter2-canary-" * 20
    split = Split(secret)
    split.feed(secret.encode() * 500 + after)
    split.lines.end()
    assert "hunter2" not in split.found[0]
    assert split.found[1:] == (["next"] if b"next" in after else [])


def test_a_secret_that_comes_in_two_parts_is_in_neither() -> None:
    split = Split("hunter2-canary")
    split.feed(b"the word is hunter2")
    split.lines.idle()
    split.feed(b"-canary, he said\n")
    assert split.found == ["the word is •••", "•••, he said"]


# From a process to its log.


def test_both_streams_are_kept_in_the_order_in_which_they_came(logged: Logged) -> None:
    source = (
        "import os, sys\n"
        "for n in range(3):\n"
        "    os.write(1, b'out %d\\n' % n)\n"
        "    sys.stdin.read()\n"
        "    os.write(2, b'err %d\\n' % n)\n"
    )
    begun = CLOCK.now()
    logged.operators.execute(script(source))
    found = logged.page()
    assert sorted(text for stream, text in logged.lines() if stream == "stdout") == ["out 0", "out 1", "out 2"]
    assert sorted(text for stream, text in logged.lines() if stream == "stderr") == ["err 0", "err 1", "err 2"]
    times = [line.at for line in found.lines]
    assert begun <= times[0] <= times[-1] <= CLOCK.now()
    assert times == sorted(times)
    assert found.closed


def test_lines_and_prompts_arrive_while_the_process_still_runs(logged: Logged, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    source = f"print('a line', flush=True); print('a prompt', end='', flush=True); open({str(gate)!r}).read()"
    thread = threading.Thread(target=logged.operators.execute, args=(script(source),))
    thread.start()
    try:
        until(lambda: ("stdout", "a prompt") in logged.lines(), within_s=WITHIN_S, what="the prompt")
        assert logged.lines()[0] == ("stdout", "a line")
        assert not logged.page().closed
        assert thread.is_alive()
    finally:
        gate.write_text("")
        thread.join(WITHIN_S)
    assert logged.page().closed


def test_a_silent_task_has_no_log(logged: Logged) -> None:
    assert logged.operators.execute(command(["true"])) == Succeeded(None)
    assert not logged.page().begun


def test_a_function_and_its_traceback_are_logged_too(logged: Logged, tmp_path: Path) -> None:
    (tmp_path / "tasks.py").write_text("def work():\n    print('at it')\n    raise LookupError('gone')\n")
    logged.operators.execute(call("python", "tasks:work", cwd=str(tmp_path)))
    texts = logged.lines()
    assert texts[0] == ("stdout", "at it")
    assert ("stderr", "LookupError: gone") in texts


def test_what_a_process_says_when_it_is_told_to_stop_is_logged(logged: Logged) -> None:
    given = command("trap 'echo stopping; exit 1' TERM; echo at it; while :; do sleep 0.05; done", shell=True)
    thread = threading.Thread(target=logged.operators.execute, args=(given,))
    thread.start()
    until(lambda: logged.page().lines, within_s=WITHIN_S, what="the first line")
    logged.operators.cancel(given)
    thread.join(WITHIN_S)
    assert ("stdout", "stopping") in logged.lines()
    assert logged.page().closed


FLOOD: Final = """
import sys
text = " a line of about a hundred characters, which is what most of them are like in a log"
block = "".join(f"{n:08d}{text}\\n" for n in range(10_000))
for _ in range(115):
    sys.stdout.write(block)
sys.stdout.write("the end\\n")
"""
READER: Final = """
import resource, sys
from pathlib import Path
from tests.operators.test_logs import FLOOD, Logged
from tests.operators.calls import script
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
Logged(Path(sys.argv[1]), kept_bytes=1_000_000).operators.execute(script(FLOOD, timeout_s=300))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_a_hundred_megabytes_fill_neither_memory_nor_disk_and_the_end_is_there(tmp_path: Path) -> None:
    # In a process of its own, whose memory was never larger for another reason.
    done = subprocess.run([sys.executable, "-c", READER, str(tmp_path)], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 16_000  # KB
    assert sum(path.stat().st_size for path in (tmp_path / "logs").rglob("*") if path.is_file()) < 1_000_000
    logged = Logged(tmp_path)
    assert logged.page(limit=1).lines[0].text.startswith("00000000 a line")
    assert logged.logs.tail(KEY, limit=1).lines[0].text == "the end"
    found: list[Line] = []
    page = logged.page()
    while page.more:
        found += page.lines
        page = logged.logs.read(KEY, after=page.after, limit=1000)
    found += page.lines
    assert sum(line.missing or 1 for line in found) == 115 * 10_000 + 1


# What it leaves behind.


@pytest.mark.parametrize("code", [0, 3])
def test_what_a_task_leaves_behind_is_kept_whether_it_fails_or_not(logged: Logged, code: int) -> None:
    line = f'cd "$SWEEPHAND_ARTIFACTS"; mkdir a; echo rows > a/b.csv; ln -s /etc/passwd link; exit {code}'
    logged.operators.execute(command(line, shell=True))
    assert logged.artifacts.listed(KEY) == [Artifact("a/b.csv", 5)]
    assert logged.artifacts.read(KEY, "a/b.csv") == b"rows\n"
    assert logged.lines() == [("system", "The artifact link is not kept: it is no file.")]


def test_a_link_whose_name_is_no_text_costs_no_line_of_the_log(logged: Logged) -> None:
    source = "import os; print('said'); os.symlink('/etc', os.environb[b'SWEEPHAND_ARTIFACTS'] + b'/\\xff')"
    logged.operators.execute(script(source))
    assert logged.lines() == [("stdout", "said"), ("system", "The artifact ? is not kept: it is no file.")]


def test_artifacts_that_cannot_be_kept_do_not_fail_the_task_and_its_log_says_so(tmp_path: Path) -> None:
    (tmp_path / "artifacts").write_text("not a folder")
    logged = Logged(tmp_path)
    outcome = logged.operators.execute(command('echo x > "$SWEEPHAND_ARTIFACTS/file"', shell=True))
    assert outcome == Succeeded(None)
    assert logged.lines() == [("system", "The artifacts could not be kept.")]


# What is secret.


def secretive(tmp_path: Path, given: Call) -> tuple[Outcome, list[Line]]:
    """The call's outcome and log, where 'hunter2' is a secret."""
    logs = FileLogs(tmp_path / "logs")
    place = Place(tmp_path / "work", given)
    place.make()
    record = Record(lambda: logs.open(KEY))
    attempt = Attempt(given, place, timedelta(seconds=1), record=record, redact=Redactor(["hunter2"]))
    words = [str(word) for word in given.task.spec["value"]]
    attempt.log("connecting as hunter2")
    outcome = run(attempt, words, env={"PATH": os.environ["PATH"], "OUT": str(place.output)}, cwd=tmp_path)
    record.end()
    return redacted(outcome, attempt.redact), logs.read(KEY, after=None, limit=100).lines


@pytest.mark.parametrize(
    "line",
    [
        "echo hunter2; echo hunter2 >&2; exit 3",
        "echo a hunter2 b",
        'echo \'{"a": ["hunter2"], "hunter2": {"b": "x hunter2"}}\' > "$OUT"; echo hunter2',
    ],
)
def test_a_secret_is_neither_in_the_log_nor_in_an_output_nor_in_a_failure(tmp_path: Path, line: str) -> None:
    outcome, lines = secretive(tmp_path, command(["sh", "-c", line]))
    assert "•••" in repr(outcome)
    assert lines[0].text == "connecting as •••"
    assert len(lines) > 1
    assert "hunter2" not in repr(outcome) + repr(lines)


def test_a_program_that_is_not_there_is_named_without_what_is_secret(tmp_path: Path) -> None:
    outcome, _ = secretive(tmp_path, command(["hunter2"]))
    assert isinstance(outcome, Failure)
    assert outcome.message == "There is no '•••' here."


# A store that fails.


class Refusing:
    """Refuses the first so many calls, then keeps what it is given."""

    def __init__(self, refusals: int) -> None:
        self.refusals = refusals
        self.lines: list[Line] = []
        self.lost: int | None = None

    def open(self, _key: LogKey) -> Log:
        return self

    def append(self, lines: Sequence[Line]) -> None:
        self._refuse()
        self.lines += lines

    def close(self, at: datetime, *, lost: int = 0) -> None:
        self._refuse()
        self.lost = lost

    def _refuse(self) -> None:
        if self.refusals:
            self.refusals -= 1
            raise Unavailable("The store is full.")


def test_a_task_whose_log_is_refused_succeeds_and_what_is_lost_is_told(tmp_path: Path) -> None:
    store = Refusing(1)
    outcome = Operators(tmp_path, logging=Logging(store.open)).execute(command(["echo", "hello"]))
    assert outcome == Succeeded({"stdout": "hello"})
    assert (store.lines, store.lost) == ([], 1)


def test_lines_after_a_refusal_say_what_is_missing_before_them(tmp_path: Path) -> None:
    store = Refusing(1)
    record = Record(lambda: store, every=timedelta(milliseconds=1))
    record.add([Line(CLOCK.now(), Stream.STDOUT, "lost")] * 3)
    until(lambda: store.refusals == 0, within_s=WITHIN_S, what="the refusal")
    record.add([Line(CLOCK.now(), Stream.STDOUT, "kept")])
    record.end()
    assert [line.text for line in store.lines] == ["… 3 lines are missing here …", "kept"]
    assert store.lost == 0


def test_a_task_whose_log_is_always_refused_succeeds(tmp_path: Path) -> None:
    operators = Operators(tmp_path, logging=Logging(Refusing(10**9).open))
    assert operators.execute(command(["echo", "hello"])) == Succeeded({"stdout": "hello"})


def test_a_log_in_a_folder_that_cannot_be_written_does_not_fail_the_task(tmp_path: Path) -> None:
    (tmp_path / "logs").write_text("not a folder")
    logged = Logged(tmp_path)
    assert logged.operators.execute(command(["echo", "hello"])) == Succeeded({"stdout": "hello"})


class Hanging(Refusing):
    """Hangs until it is let go."""

    def __init__(self) -> None:
        super().__init__(0)
        self.hangs = threading.Event()
        self.free = threading.Event()

    def append(self, lines: Sequence[Line]) -> None:
        self.hangs.set()
        assert self.free.wait(WITHIN_S)
        super().append(lines)


def test_while_a_store_hangs_memory_is_bounded_and_the_latest_lines_stay(tmp_path: Path) -> None:
    store = Hanging()
    record = Record(lambda: store)
    record.add([Line(CLOCK.now(), Stream.STDOUT, "first")])
    assert store.hangs.wait(WITHIN_S)
    text = "x" * 10_000
    written = 3 * PENDING_MAX // 10_000
    for number in range(written):
        record.add([Line(CLOCK.now(), Stream.STDOUT, f"{number} {text}")])
    store.free.set()
    record.end()
    first, gap, *rest = store.lines
    assert first.text == "first"
    assert gap.missing == written - len(rest)
    assert rest[-1].text.startswith(f"{written - 1} ")
    assert sum(len(line.text) for line in rest) <= PENDING_MAX


def test_a_store_that_hangs_at_the_end_is_not_waited_for_for_ever() -> None:
    store = Hanging()
    record = Record(lambda: store)
    record.add([Line(CLOCK.now(), Stream.STDOUT, "first")])
    assert store.hangs.wait(WITHIN_S)
    record.end(within=timedelta(milliseconds=10))
    assert store.lines == []
    store.free.set()
    until(lambda: store.lost == 0, within_s=WITHIN_S, what="the end of the writing thread")
