"""The house rules that a program can keep; each test also shows that its rule can be broken.

A rule is a function from a source file to its offences. An exception to a rule is an entry in one of the
tables below, with its reason; an exception that is no longer needed is an offence too.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cached_property
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
PACKAGE: Final = "layers/core/python/sweephand/"

MODULE_LINES_MAX: Final = 450
FUNCTION_LINES_MAX: Final = 60

# Exceptions: a file (or a folder, ending in a slash) and why it may.
MAY_READ_TIME_AND_CHANCE: Final = {
    f"{PACKAGE}clock.py": "the one adapter for time and ids",
}
MAY_KNOW_BOTO: Final = {
    f"{PACKAGE}aws/": "the ports over boto3: the only place where a ClientError exists",
    f"{PACKAGE}operators/aws/": "tasks that call AWS services",
    f"{PACKAGE}local/cloud/": "the account in memory that boto3's clients find instead of AWS",
}
MAY_ASSIGN_STATE: Final = {
    f"{PACKAGE}domain/run.py": "the lifecycle of a run",
    f"{PACKAGE}domain/backfill.py": "the lifecycle of a backfill",
}
MAY_SLEEP: Final[Mapping[str, str]] = {}

WORLD: Final = re.compile(
    r"datetime\.datetime\.(now|utcnow|today)|datetime\.date\.today"
    r"|time\.(time|monotonic|perf_counter|process_time)(_ns)?"
    r"|random\.(?!Random$)\w+|secrets\.\w+|uuid\.uuid[14]|os\.(urandom|getrandom)"
)
SLEEP: Final = re.compile(r"(time|asyncio)\.sleep")
EVASION: Final = re.compile(r"pytest\.(skip|importorskip|xfail|mark\.(skip|skipif|xfail))|NotImplementedError")
BOTO: Final = re.compile(r"(boto3|botocore|types_boto3\w*|mypy_boto3\w*)(\..*)?|(.*\.)?(ClientError|BotoCoreError)")
NAMELESS: Final = re.compile(r"(utils?|helpers?|common|managers?|services?|processors?)")

# Made of pieces, so that this file keeps the rules that it states.
UNFINISHED: Final = re.compile(r"\b(" + "|".join(["TO" + "DO", "FIX" + "ME", "X" + "XX"]) + r")\b")
MACHINE: Final = re.compile(
    r"(?<![\w.])/(work|root|home|Users)" + r"/(?=[\w.~-])"
    r"|/opt" + r"/(wheels|pypi)"
    r"|\.py" + r"env\b"
    r"|pypi\.org" + r"/simple|files\.python" + r"hosted\.org"
    r"|registry\.npm" + r"js"
)


@dataclass(frozen=True)
class Source:
    """A text file: its path from the root, and what it says."""

    path: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, self.path)

    @cached_property
    def package(self) -> list[str]:
        """The package this module is in, for relative imports."""
        return self.path.removeprefix(PACKAGE.removesuffix("sweephand/")).split("/")[:-1]

    @cached_property
    def imports(self) -> list[tuple[int, str, str]]:
        """Line, local name and full name of every import."""
        found = []
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                for name in node.names:
                    bound = name.asname or name.name.split(".")[0]
                    found.append((node.lineno, bound, name.name if name.asname else bound))
                    found.append((node.lineno, name.name, name.name))
            elif isinstance(node, ast.ImportFrom):
                above = self.package[: len(self.package) - node.level + 1] if node.level else []
                origin = ".".join([*above, *([node.module] if node.module else [])])
                found += [(node.lineno, name.asname or name.name, f"{origin}.{name.name}") for name in node.names]
        return found

    @cached_property
    def names(self) -> list[tuple[int, str]]:
        """Line and full dotted name of everything that is mentioned or imported."""
        meanings = {bound: full for _, bound, full in self.imports}
        found = [(line, full) for line, _, full in self.imports]
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Name | ast.Attribute) and (dotted := _dotted(node)):
                first, *rest = dotted.split(".")
                found.append((node.lineno, ".".join([meanings.get(first, first), *rest])))
        return found


def _dotted(node: ast.expr) -> str | None:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (before := _dotted(node.value)):
        return f"{before}.{node.attr}"
    return None


def _called(node: ast.Call) -> str:
    """The last name of what is called: `replace` in `dataclasses.replace(…)`."""
    return (_dotted(node.func) or "").split(".")[-1]


# Which files there are.


def _ignored() -> list[str]:
    lines = (ROOT / ".gitignore").read_text().splitlines()
    return [".git/", *(line.strip() for line in lines if line.strip() and not line.startswith("#"))]


def _kept(folder: Path, ignored: list[str]) -> Iterator[Path]:
    for entry in sorted(folder.iterdir()):
        name = f"{entry.name}/" if entry.is_dir() and not entry.is_symlink() else entry.name
        if any(fnmatch(name, pattern) for pattern in ignored):
            continue
        if name.endswith("/"):
            yield from _kept(entry, ignored)
        elif entry.is_file():
            yield entry


def _texts() -> Iterator[Source]:
    for path in _kept(ROOT, _ignored()):
        try:
            text = path.read_bytes().decode()
        except UnicodeDecodeError:
            continue  # a binary file says nothing that these rules could read
        yield Source(path.relative_to(ROOT).as_posix(), text)


TEXTS: Final = tuple(_texts())
PYTHON: Final = tuple(source for source in TEXTS if source.path.endswith(".py"))
OURS: Final = tuple(source for source in PYTHON if source.path.startswith(PACKAGE))
TESTS: Final = tuple(source for source in PYTHON if source.path.startswith("tests/"))

# What keeping a rule means.

Rule = Callable[[Source], Iterable[tuple[int, str]]]


def _excused(path: str, allowed: Mapping[str, str]) -> str | None:
    """The exception that covers this file, if one does."""
    return next((entry for entry in allowed if path.startswith(entry)), None)


def assert_kept(rule: Rule, sources: Iterable[Source], allowed: Mapping[str, str] | None = None) -> None:
    """Fails with every offence, and with every exception that covers files but is not needed by any."""
    offences, present, needed = [], set(), set()
    for source in sources:
        found = sorted(set(rule(source)))
        if entry := _excused(source.path, allowed or {}):
            present.add(entry)
            needed |= {entry} if found else set()
        else:
            offences += [f"{source.path}:{line}: {what}" for line, what in found]
    offences += [f"{entry}: is excused, but needs no excuse" for entry in sorted(present - needed)]
    assert not offences, "\n" + "\n".join(offences)


def assert_catches(rule: Rule, *broken: str, path: str = f"{PACKAGE}domain/broken.py") -> None:
    """Fails where a broken snippet passes the rule."""
    for text in broken:
        assert list(rule(Source(path, text))), f"{rule.__name__} does not see:\n{text}"


def assert_passes(rule: Rule, *sound: str, path: str = f"{PACKAGE}domain/sound.py") -> None:
    """Fails where the rule finds fault with a sound snippet."""
    for text in sound:
        assert not list(rule(Source(path, text))), f"{rule.__name__} forbids:\n{text}"


# The rules.


def reads_time_or_chance(source: Source) -> Iterator[tuple[int, str]]:
    """A mention is enough: `default_factory=datetime.now` reads the clock as well."""
    yield from ((line, name) for line, name in source.names if WORLD.fullmatch(name))
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call) and not node.args and _called(node) == "Random":
            yield node.lineno, "a Random without a seed"


def test_time_chance_and_ids_come_only_from_the_clock() -> None:
    assert_catches(
        reads_time_or_chance,
        "from datetime import datetime\nnow = datetime.now()",
        "import datetime as dt\nnow = dt.datetime.now(dt.UTC)",
        "from datetime import datetime\nfield(default_factory=datetime.utcnow)",
        "import time\ntime.time()",
        "from time import monotonic as ticks\nticks()",
        "import random\nrandom.random()",
        "from random import Random\nRandom()",
        "import uuid\nuuid.uuid4()",
        "from os import urandom\nurandom(8)",
        "import secrets\nsecrets.token_hex()",
    )
    assert_passes(reads_time_or_chance, "clock.now()", "from random import Random\nRandom(7).random()")
    assert_kept(reads_time_or_chance, OURS, MAY_READ_TIME_AND_CHANCE)


def knows_boto(source: Source) -> Iterator[tuple[int, str]]:
    yield from ((line, name) for line, name in source.names if BOTO.fullmatch(name))


def test_boto_and_its_errors_stay_in_their_rooms() -> None:
    assert_catches(
        knows_boto,
        "import boto3",
        "from botocore.exceptions import ClientError",
        "def call() -> None:\n    import botocore.config",
        "try:\n    call()\nexcept errors.ClientError:\n    raise",
    )
    assert_kept(knows_boto, OURS, MAY_KNOW_BOTO)


def has_a_name_that_says_nothing(source: Source) -> Iterator[tuple[int, str]]:
    for part in source.path.removesuffix(".py").split("/"):
        if any(NAMELESS.fullmatch(word) for word in part.split("_")):
            yield 1, f"{part} says nothing: a function lives with the noun it serves"


def test_modules_are_named_for_a_noun_or_a_verb() -> None:
    for name in ("utils", "run_helpers", "common", "job_manager", "service", "processors"):
        assert_catches(has_a_name_that_says_nothing, "", path=f"{PACKAGE}{name}.py")
    assert_catches(has_a_name_that_says_nothing, "", path=f"{PACKAGE}common/job.py")
    assert_kept(has_a_name_that_says_nothing, PYTHON)


def lacks_a_docstring(source: Source) -> Iterator[tuple[int, str]]:
    if not ast.get_docstring(source.tree) and (source.text.strip() or source.path.startswith(PACKAGE)):
        yield 1, "the module does not say what it is for"


def test_every_module_says_what_it_is_for() -> None:
    assert_catches(lacks_a_docstring, "import this", "# a comment is no docstring", "")
    assert_kept(lacks_a_docstring, PYTHON)


def is_unfinished(source: Source) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(source.text.splitlines(), 1):
        if found := UNFINISHED.search(line):
            yield number, found[0]


def test_nothing_is_left_for_later() -> None:
    assert_catches(is_unfinished, "x = 1  # " + "TO" + "DO: two", "# FIX" + "ME")
    assert_kept(is_unfinished, TEXTS)


def evades(source: Source) -> Iterator[tuple[int, str]]:
    yield from ((line, name) for line, name in source.names if EVASION.fullmatch(name))


def test_no_test_is_skipped_and_no_function_is_a_stub() -> None:
    assert_catches(
        evades,
        "raise NotImplementedError",
        "raise NotImplementedError('later')",
        "import pytest\npytest.skip('slow')",
        "from pytest import skip",
        "import pytest\n@pytest.mark.xfail\ndef test_it() -> None: ...",
        "from pytest import mark\n@mark.skipif(True, reason='')\ndef test_it() -> None: ...",
    )
    assert_passes(evades, "import pytest\n@pytest.mark.soak\ndef test_it() -> None: ...")
    assert_kept(evades, PYTHON)


def swallows(source: Source) -> Iterator[tuple[int, str]]:
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call) and _called(node) == "suppress" and any(map(_is_broad, node.args)):
            yield node.lineno, "every exception is suppressed"
        elif isinstance(node, ast.ExceptHandler):
            if node.type is None:
                yield node.lineno, "a bare except"
            elif _is_broad(node.type) and all(_does_nothing(step) for step in node.body):
                yield node.lineno, "every exception is dropped"


def _is_broad(kind: ast.expr) -> bool:
    kinds = kind.elts if isinstance(kind, ast.Tuple) else [kind]
    return any(_dotted(one) in {"Exception", "BaseException"} for one in kinds)


def _does_nothing(step: ast.stmt) -> bool:
    return isinstance(step, ast.Pass | ast.Continue) or (
        isinstance(step, ast.Expr) and isinstance(step.value, ast.Constant)
    )


def test_no_exception_is_swallowed_whole() -> None:
    assert_catches(
        swallows,
        "try:\n    call()\nexcept:\n    log()",
        "try:\n    call()\nexcept Exception:\n    pass",
        "try:\n    call()\nexcept (KeyError, BaseException):\n    ...",
        "for one in many:\n    try:\n        call()\n    except Exception:\n        continue",
        "with contextlib.suppress(Exception):\n    call()",
    )
    assert_passes(swallows, "try:\n    call()\nexcept KeyError:\n    pass  # safe: it is gone already")
    assert_kept(swallows, PYTHON)


def is_too_long(source: Source) -> Iterator[tuple[int, str]]:
    lines = len(source.text.splitlines())
    if lines > MODULE_LINES_MAX:
        yield 1, f"{lines} lines, over {MODULE_LINES_MAX}"
    for node in ast.walk(source.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > FUNCTION_LINES_MAX:
                yield node.lineno, f"{node.name} has {lines} lines, over {FUNCTION_LINES_MAX}"


def test_modules_and_functions_stay_short() -> None:
    assert_catches(
        is_too_long,
        "x = 1\n" * (MODULE_LINES_MAX + 1),
        "def long() -> None:\n" + "    step()\n" * FUNCTION_LINES_MAX,
    )
    assert_passes(is_too_long, "def short() -> None:\n" + "    step()\n" * (FUNCTION_LINES_MAX - 1))
    assert_kept(is_too_long, OURS)


def sleeps(source: Source) -> Iterator[tuple[int, str]]:
    yield from ((line, name) for line, name in source.names if SLEEP.fullmatch(name))


def test_no_test_sleeps() -> None:
    assert_catches(sleeps, "import time\ntime.sleep(1)", "from time import sleep\nsleep(1)")
    assert_catches(sleeps, "import asyncio\nasync def wait() -> None:\n    await asyncio.sleep(1)")
    assert_kept(sleeps, TESTS, MAY_SLEEP)


def names_a_machine(source: Source) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(source.text.splitlines(), 1):
        if found := MACHINE.search(line):
            yield number, found[0]


def test_no_file_names_a_machine_or_a_registry() -> None:
    assert_catches(
        names_a_machine,
        "data = '/ho" + "me/someone/data'",
        "/ro" + "ot/.cache",
        "/wo" + "rk/tree",
        "~/.py" + "env/shims",
        "--index-url https://pypi.org" + "/simple",
        '"resolved": "https://registry.npm' + 'js.org/a"',
    )
    assert_passes(names_a_machine, "GET /api/v1/jobs", "https://example.org/work/1", "the /home page")
    assert_kept(names_a_machine, TEXTS)


def assigns_state(source: Source) -> Iterator[tuple[int, str]]:
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call) and _called(node) in {
            "replace",
            "_replace",
        }:
            if any(keyword.arg == "state" for keyword in node.keywords):
                yield node.lineno, "replace(…, state=…)"
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and node.attr == "state":
            yield node.lineno, ".state = …"


def test_only_a_lifecycle_assigns_a_state() -> None:
    assert_catches(
        assigns_state,
        "from dataclasses import replace\nreplace(run, state=RunState.FAILED)",
        "import dataclasses\ndataclasses.replace(run, epoch=2, state=state)",
        "run.state = RunState.FAILED",
    )
    assert_passes(assigns_state, "replace(run, epoch=2)", "state = run.state")
    assert_kept(assigns_state, OURS, MAY_ASSIGN_STATE)


def leaves_the_domain(source: Source) -> Iterator[tuple[int, str]]:
    for line, _, name in source.imports:
        top, _, rest = name.partition(".")
        room = rest.split(".")[0]
        if top == "sweephand" and room not in {"", "domain", "errors"}:
            yield line, f"{name} is above the domain"
        elif top not in sys.stdlib_module_names | {"sweephand", "croniter", "msgspec", "tzdata"}:
            yield line, f"{name}: the domain knows only the standard library, msgspec and croniter"


def test_the_domain_imports_only_itself_and_the_errors() -> None:
    assert_catches(
        leaves_the_domain,
        "from sweephand.ports import Runs",
        "from sweephand import engine",
        "from .. import messages",
        "from ..settings import Settings",
        "import pydantic",
    )
    assert_passes(
        leaves_the_domain,
        "from .run import Run",
        "from sweephand.domain.run import Run\nfrom ..errors import Defect",
        "from croniter import croniter\nimport importlib.metadata",
    )
    assert_kept(leaves_the_domain, (source for source in OURS if source.path.startswith(f"{PACKAGE}domain/")))


def is_no_plain_pattern(source: Source) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(source.text.splitlines(), 1):
        if not line.startswith("#") and (line.startswith("!") or "/" in line.rstrip("/")):
            yield number, f"{line}: these tests would not understand it as git does"


def test_gitignore_is_plain_enough_for_these_tests_to_read() -> None:
    assert_catches(is_no_plain_pattern, "!keep.db", "console/dist/")
    assert_kept(is_no_plain_pattern, (source for source in TEXTS if source.path == ".gitignore"))


def test_the_rules_see_the_files_they_are_about() -> None:
    paths = {source.path for source in TEXTS}
    assert {f"{PACKAGE}__init__.py", "tests/test_house.py", "Makefile", "pyproject.toml", ".ci/run"} <= paths
    assert not [path for path in paths if path.startswith((".git/", ".venv/"))]
