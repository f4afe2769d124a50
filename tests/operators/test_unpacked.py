"""Functions from packs: fetched once, checked, unpacked for all, and removed only while nobody uses them."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from sweephand.calls import Succeeded
from sweephand.domain.ids import Namespace
from sweephand.domain.retry import Failure, FailureClass
from sweephand.domain.zips import digest_of, zipped
from sweephand.errors import InvalidInput, NotFound, Unavailable
from sweephand.operators import Operators, Unpacked
from tests.operators.calls import call

TEAM = Namespace("team")
TASKS = b"""
from sweephand import job, task
from lib.words import greeting

@job
def never_run():
    hello()

@task
def hello(name="you"):
    return f"{greeting()}, {name}"

def where():
    import sys
    return __file__
"""
WORDS = b"""
from pathlib import Path

def greeting():
    return Path(__file__).with_name("word.txt").read_text()
"""
FILES = {
    "sales.py": TASKS,
    "lib/__init__.py": b"",
    "lib/words.py": WORDS,
    "lib/word.txt": b"hello",
}
PACK = zipped(FILES)
DIGEST = digest_of(PACK)


class Shelf:
    """Packs, and how often they were asked for."""

    def __init__(self, *packs: bytes) -> None:
        self.packs = {digest_of(one): one for one in packs}
        self.asked: list[tuple[Namespace, str]] = []

    def __call__(self, namespace: Namespace, digest: str) -> bytes | None:
        self.asked.append((namespace, digest))
        return self.packs.get(digest)


@pytest.fixture
def shelf() -> Shelf:
    return Shelf(PACK)


@pytest.fixture
def operators(tmp_path: Path, shelf: Shelf) -> Operators:
    return Operators(tmp_path / "work", code=Unpacked(tmp_path / "code", shelf))


def test_a_function_of_a_pack_runs_with_its_modules_and_files(operators: Operators, shelf: Shelf) -> None:
    for name in ("ann", "bob"):
        outcome = operators.execute(call("python", "sales:hello", kwargs={"name": name}, code=DIGEST))
        assert outcome == Succeeded(f"hello, {name}")
    assert shelf.asked == [(TEAM, DIGEST)]


def test_a_task_needs_nothing_installed_but_python(tmp_path: Path, shelf: Shelf) -> None:
    """As on Lambda: where our package is nowhere that Python looks, it is found beside the runner."""
    runner = Path(sys.modules["sweephand.operators.python"].__file__ or "").with_name("runner.py")
    request, output = tmp_path / "call.json", tmp_path / "output"
    with Unpacked(tmp_path / "code", shelf).using(TEAM, DIGEST) as path:
        given = f'"code": "{path}", "output": "{output}", "failure": "{tmp_path / "failure"}"'
        request.write_text(f'{{"function": "sales:hello", "args": [], "kwargs": {{}}, {given}}}')
        subprocess.run([sys.executable, "-P", "-S", str(runner), str(request)], cwd=tmp_path, check=True)
    assert output.read_text() == '"hello, you"'


def test_code_that_is_not_there_fails_for_good(operators: Operators) -> None:
    outcome = operators.execute(call("python", "sales:hello", code="0" * 64))
    assert outcome == Failure("CodeNotFound", f"There is no code {'0' * 64} in team.", FailureClass.PERMANENT)


def test_code_that_came_damaged_is_fetched_again(operators: Operators, shelf: Shelf) -> None:
    shelf.packs[DIGEST] = PACK + b"x"
    outcome = operators.execute(call("python", "sales:hello", code=DIGEST))
    assert outcome == Failure("CodeUnavailable", f"The code {DIGEST} came damaged.")
    shelf.packs[DIGEST] = PACK
    assert operators.execute(call("python", "sales:hello", code=DIGEST)) == Succeeded("hello, you")


def test_a_store_that_does_not_answer_may_answer_later(tmp_path: Path) -> None:
    def unavailable(_namespace: Namespace, _digest: str) -> bytes | None:
        raise Unavailable("The bucket did not answer.")

    operators = Operators(tmp_path / "work", code=Unpacked(tmp_path / "code", unavailable))
    outcome = operators.execute(call("python", "sales:hello", code=DIGEST))
    assert outcome == Failure("CodeUnavailable", "The bucket did not answer.")


def test_a_zip_that_is_no_good_fails_for_good_and_leaves_nothing(tmp_path: Path) -> None:
    import io
    import zipfile

    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("fine.py", "")
        archive.writestr("../../outside.py", "")
    bad = made.getvalue()
    operators = Operators(tmp_path / "work", code=Unpacked(tmp_path / "a" / "code", Shelf(bad)))
    outcome = operators.execute(call("python", "fine:f", code=digest_of(bad)))
    assert isinstance(outcome, Failure)
    assert (outcome.error, outcome.kind) == ("InvalidInput", FailureClass.PERMANENT)
    assert not list(tmp_path.rglob("outside.py"))
    assert not list(tmp_path.rglob("fine.py"))


def test_namespaces_do_not_share_what_is_unpacked(tmp_path: Path, shelf: Shelf) -> None:
    code = Unpacked(tmp_path, shelf)
    with code.using(TEAM, DIGEST) as one, code.using(Namespace("other"), DIGEST) as other:
        assert one != other
    assert shelf.asked == [(TEAM, DIGEST), ("other", DIGEST)]
    shelf.packs.clear()
    with pytest.raises(NotFound), code.using(Namespace("third"), DIGEST):
        pass


def test_of_many_that_begin_at_once_one_fetches(tmp_path: Path, shelf: Shelf) -> None:
    """A fetch takes long enough for a second one to come, if there is one."""
    together, second = threading.Barrier(8), threading.Barrier(2)

    def slowly(namespace: Namespace, digest: str) -> bytes | None:
        with suppress(threading.BrokenBarrierError):
            second.wait(0.5)
        return shelf(namespace, digest)

    code = Unpacked(tmp_path, slowly)

    def use() -> str:
        together.wait(10)
        with code.using(TEAM, DIGEST) as path:
            return (path / "lib/word.txt").read_text()

    with ThreadPoolExecutor(8) as threads:
        assert {one.result() for one in [threads.submit(use) for _ in range(8)]} == {"hello"}
    assert len(shelf.asked) == 1


def test_of_two_processes_that_unpack_at_once_both_find_it_whole(tmp_path: Path, shelf: Shelf) -> None:
    """The other one is first, between our look and our rename."""
    code = Unpacked(tmp_path, shelf)

    def meanwhile(namespace: Namespace, digest: str) -> bytes | None:
        with Unpacked(tmp_path, shelf).using(namespace, digest):
            return PACK

    with Unpacked(tmp_path, meanwhile).using(TEAM, DIGEST) as path:
        assert (path / "lib/word.txt").read_text() == "hello"
    with code.using(TEAM, DIGEST):
        pass
    assert [one.name for one in (tmp_path / "team").iterdir()] == [DIGEST]


def pack_of(name: str, size: int = 1_000) -> bytes:
    return zipped({f"{name}.bin": bytes(size)})


def test_what_was_used_least_lately_makes_room(tmp_path: Path) -> None:
    packs = [pack_of(name) for name in "abc"]
    digests = [digest_of(one) for one in packs]
    code = Unpacked(tmp_path, Shelf(*packs), bytes_max=2_500)
    for n, digest in enumerate([digests[0], digests[1], digests[0]]):
        with code.using(TEAM, digest) as path:
            pass
        os.utime(path, ns=(n, n))
    with code.using(TEAM, digests[2]):
        pass
    assert {one.name for one in (tmp_path / "team").iterdir()} == {digests[0], digests[2]}


def test_what_is_used_stays_also_for_another_process(tmp_path: Path) -> None:
    packs = [pack_of(name) for name in "abc"]
    first, second, third = (digest_of(one) for one in packs)
    program = (
        "import sys; from pathlib import Path; from sweephand.operators.unpacked import Unpacked\n"
        f"with Unpacked(Path({str(tmp_path)!r}), lambda *_: None).using('team', {first!r}) as path:\n"
        "    print('holds', flush=True); sys.stdin.readline(); print(sorted(one.name for one in path.iterdir()))\n"
    )
    code = Unpacked(tmp_path, Shelf(*packs), bytes_max=1_500)
    with code.using(TEAM, first) as path:
        pass
    os.utime(path, ns=(1, 1))
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        assert holder.stdout.readline() == "holds\n"
        with code.using(TEAM, second), code.using(TEAM, third):
            assert {one.name for one in (tmp_path / "team").iterdir()} == {first, second, third}
        holder.stdin.write("\n")
        holder.stdin.flush()
        assert holder.stdout.readline() == "['a.bin']\n"
    fresh = pack_of("d")
    with Unpacked(tmp_path, Shelf(fresh), bytes_max=1_500).using(TEAM, digest_of(fresh)):
        assert {one.name for one in (tmp_path / "team").iterdir()} == {digest_of(fresh)}


def test_what_a_dead_process_left_half_done_goes_too(tmp_path: Path, shelf: Shelf) -> None:
    left = tmp_path / "team" / f"{'e' * 64}.new-left"
    left.mkdir(parents=True)
    (left / "half.py").write_bytes(bytes(10_000))
    os.utime(left, ns=(1, 1))
    with Unpacked(tmp_path, shelf, bytes_max=9_000).using(TEAM, DIGEST):
        assert [one.name for one in (tmp_path / "team").iterdir()] == [DIGEST]


def test_a_disk_that_refuses_is_told_as_it_is(tmp_path: Path, shelf: Shelf) -> None:
    (tmp_path / "team").write_text("no folder")
    with pytest.raises(Unavailable, match="could not be unpacked here"), Unpacked(tmp_path, shelf).using(TEAM, DIGEST):
        pass


def test_the_users_own_trouble_is_not_ours(tmp_path: Path, shelf: Shelf) -> None:
    with pytest.raises(FileNotFoundError), Unpacked(tmp_path, shelf).using(TEAM, DIGEST):
        raise FileNotFoundError
    with pytest.raises(InvalidInput), Unpacked(tmp_path, shelf).using(TEAM, DIGEST):
        raise InvalidInput("of the task")
