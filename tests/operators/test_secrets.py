"""Secrets in operators: in the environment, in templates that may name them, and in nothing that comes out."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from sweephand.calls import Call, Outcome, Skipped, Succeeded
from sweephand.domain.retry import Failure, FailureClass
from sweephand.operators import Attempt, Operators
from sweephand.secrets import Values
from tests.operators.calls import call, execute, script

CANARY = "hunter2-canary"
SECRETS = {"DB": CANARY}
SAYS = "import os, sys; db = os.environ['DB']; "


def given(made: Call, values: Mapping[str, str] = SECRETS) -> Call:
    """The call with its secrets, as the engine makes it."""
    declared = dict.fromkeys(values, "an-id")
    task = replace(made.task, spec={**made.task.spec, "secrets": declared})
    return replace(made, task=task, secrets=Values(dict(values)))


def says(folder: Path, source: str, values: Mapping[str, str] = SECRETS, **options: Any) -> Outcome:
    return execute(folder, given(script(SAYS + source, **options), values))


def test_a_secret_is_an_environment_variable(tmp_path: Path) -> None:
    assert says(tmp_path, "print(len(db), db[:3], db[-3:])") == Succeeded({"stdout": f"{len(CANARY)} hun ary"})


def test_env_may_be_made_of_secrets_and_wins_over_one_of_its_name(tmp_path: Path) -> None:
    env = {"URL": "db://${secrets.DB}@${params.host}", "DB": "x${secrets.DB}"}
    source = "print(os.environ['URL'] == 'db://hunter2' + '-canary@h', db[:4])"
    assert says(tmp_path, source, env=env, params={"host": "h"}) == Succeeded({"stdout": "True xhun"})


def test_nothing_overrides_what_is_promised(tmp_path: Path) -> None:
    made = says(tmp_path, "print(os.environ['SWEEPHAND_JOB'])", {**SECRETS, "SWEEPHAND_JOB": "another"})
    assert made == Succeeded({"stdout": "report"})


@pytest.mark.parametrize(
    "source",
    [
        "print('got', db)",
        "import json; json.dump({db: [db, {'deep': 'x' + db}]}, open(os.environ['SWEEPHAND_OUTPUT'], 'w'))",
        "print(db, file=sys.stderr); sys.exit(3)",
        "print(db); sys.exit(3)",
        "raise RuntimeError(db)",
        "import base64; print(base64.b64encode(b'user:' + db.encode() + b'!').decode())",
        "from urllib.parse import quote; print(quote('?' + db))",
        "import os; os.kill(os.getpid(), 9) if print(db, flush=True) is None else 0",
        "open(os.environ['SWEEPHAND_OUTPUT'], 'w').write('{' + db)",
    ],
)
def test_whatever_a_command_says_is_without_the_value(tmp_path: Path, source: str) -> None:
    outcome = says(tmp_path, source)
    assert isinstance(outcome, Succeeded | Failure)
    assert CANARY not in repr(outcome)
    assert "hunter2" not in repr(outcome)


def test_a_value_is_not_recognised_by_halves_and_yet_none_is_left(tmp_path: Path) -> None:
    """What is kept of a stream is its end, and of that what an output can hold."""
    large = "".join(f"{n:06x}" for n in range(10_923))[:65_536]
    for source in ("print(db)", "print(db, file=sys.stderr); sys.exit(1)", "print('x' * 70_000 + db)"):
        outcome = says(tmp_path, source, {"DB": large})
        assert large[-20:] not in repr(outcome), source
        assert large[-800:-700] not in repr(outcome), source
    cut = says(tmp_path, "print('x' * (2_000 - 5) + db + 'y' * 1_990)")
    assert isinstance(cut, Succeeded)
    assert "anary" not in cut.output["stdout"]


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    home.mkdir()
    (home / "canaries.py").write_text(
        "import os\n"
        "def returns(): return {'db': os.environ['DB']}\n"
        "def raises(): raise ValueError('x' * 990 + os.environ['DB'])\n"
        "def names(): raise type(os.environ['DB'].replace('-', '_'), (Exception,), {})('no')\n"
        "def keyed(): return {}[os.environ['DB']]\n"
        "def skips(): raise SystemExit(99)\n"
    )
    return home


@pytest.mark.parametrize("function", ["returns", "raises", "names", "keyed", "skips"])
def test_whatever_a_function_says_is_without_the_value(tmp_path: Path, tasks: Path, function: str) -> None:
    made = call("python", f"canaries:{function}", env={"PYTHONPATH": str(tasks)})
    outcome = execute(tmp_path / "area", given(made, {"DB": CANARY, "NAME": "hunter2_canary"}))
    assert isinstance(outcome, Succeeded | Failure | Skipped)
    assert "hunter2" not in repr(outcome)


class Talkative(Operators):
    """A place whose operator is as careless as one can be."""

    def __init__(self, folder: Path, outcome: Exception | Outcome) -> None:
        super().__init__(folder)
        self._operators = {"command": self}
        self._outcome = outcome

    def execute(self, told: Call | Attempt) -> Outcome:
        if isinstance(told, Call):
            return super().execute(told)
        if isinstance(self._outcome, Exception):
            raise self._outcome
        return self._outcome


@pytest.mark.parametrize(
    "outcome",
    [
        Succeeded({"a": CANARY}),
        Skipped(f"no {CANARY}"),
        Failure(CANARY, CANARY),
        Failure("Long", f"it is {CANARY}"[:15]),
        ValueError(f"https://x.test/?{CANARY}"),
    ],
)
def test_what_any_operator_says_or_raises_leaves_without_the_value(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, outcome: Exception | Outcome
) -> None:
    caplog.set_level(logging.DEBUG)
    said = Talkative(tmp_path, outcome).execute(given(script("")))
    assert "hunter2" not in repr(said)
    assert "•••" in repr(said)
    assert CANARY not in caplog.text


def test_an_output_that_redaction_makes_too_long_is_refused(tmp_path: Path) -> None:
    source = "import json; json.dump([db] * 500, open(os.environ['SWEEPHAND_OUTPUT'], 'w'))"
    outcome = says(tmp_path, source, {"DB": "abcd"})
    assert isinstance(outcome, Failure)
    assert (outcome.error, outcome.kind) == ("OutputTooLarge", FailureClass.PERMANENT)
