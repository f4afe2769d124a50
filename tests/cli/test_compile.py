"""Job files compiled for whoever scans a folder: plain files, with the code beside them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from sweephand.api.filing import ApiFiling
from sweephand.cli import main
from sweephand.domain.kinds import KINDS
from sweephand.domain.zips import check_zip, digest_of
from sweephand.engine.scan import scan
from sweephand.local.job_folder import JobFolder
from sweephand.packs import Pack
from sweephand.testing import VirtualScheduler
from tests.cli.scripted import Answer, scripted

EXAMPLE = Path(__file__).parents[2] / "examples" / "sales"


def run(*words: str, code: int = 0) -> Any:
    result = CliRunner().invoke(main, words)
    assert result.exit_code == code, result.output + result.stderr
    return result


def files(folder: str = "out") -> set[str]:
    return {path.relative_to(folder).as_posix() for path in Path(folder).rglob("*") if path.is_file()}


@pytest.fixture(autouse=True)
def jobs(home: Path) -> Path:
    return Path(shutil.copytree(EXAMPLE, home / "jobs", ignore=shutil.ignore_patterns("__pycache__")))


def test_a_folder_is_compiled_without_a_server_and_the_same_again_writes_nothing() -> None:
    said = run("compile", "jobs", "--to", "out").stdout
    assert said == "Wrote 2 jobs and 1 pack of code to out.\n"
    (pack,) = Path("out/code").iterdir()
    assert files() == {"compiled.json", "jobs/daily-sales.json", "jobs/weekly-cleaning.json", f"code/{pack.name}"}
    check_zip(pack.read_bytes())
    assert pack.name == f"{digest_of(pack.read_bytes())}.zip"
    document = json.loads(Path("out/jobs/daily-sales.json").read_text())
    assert {task["run"]["code"] for task in document["tasks"] if "python" in task["run"]} == {pack.stem}
    written = [path for name in ("jobs", "code") for path in Path("out", name).iterdir()]
    before = [path.stat().st_mtime_ns for path in written]
    run("compile", "jobs", "--to", "out")
    assert [path.stat().st_mtime_ns for path in written] == before


def test_what_no_file_says_any_more_is_removed_and_nothing_else(jobs: Path) -> None:
    run("compile", "jobs", "--to", "out")
    Path("out/jobs/own.json").write_text("{}")
    Path("out/README.md").write_text("What this is.")
    (jobs / "daily.py").unlink()
    told = json.loads(run("compile", "jobs", "--to", "out", "--json").stdout)
    assert told["files"] == ["jobs/weekly-cleaning.json"]
    assert [name.partition("/")[0] for name in told["removed"]] == ["code", "jobs"]
    assert files() == {"compiled.json", "jobs/weekly-cleaning.json", "jobs/own.json", "README.md"}


def test_what_somebody_else_wrote_is_not_overwritten() -> None:
    Path("out/jobs").mkdir(parents=True)
    Path("out/jobs/weekly-cleaning.json").write_text("{}")
    assert "--force overwrites it" in run("compile", "jobs", "--to", "out", code=1).stderr
    assert files() == {"jobs/weekly-cleaning.json"}
    run("compile", "jobs", "--to", "out", "--force")
    assert json.loads(Path("out/jobs/weekly-cleaning.json").read_text())["name"] == "weekly-cleaning"


def test_all_that_is_wrong_is_told_with_its_line_and_nothing_is_written(jobs: Path) -> None:
    (jobs / "wrong.yaml").write_text("name: wrong\nschedule: '61 * * * *'\ncomand: x\n")
    (jobs / "twice.yaml").write_text("name: daily-sales\ncommand: x\n")
    (jobs / "nameless.yaml").write_text("command: x\n")
    wrong = run("compile", "jobs", "--to", "out", code=1).stderr
    assert wrong.startswith("Error: Nothing was written.\n")
    assert "jobs/wrong.yaml:2: schedule: " in wrong
    assert "jobs/wrong.yaml:3: comand: " in wrong
    assert "The job 'daily-sales' is in jobs/daily.py too." in wrong
    assert "jobs/nameless.yaml" in wrong
    assert not Path("out").exists()


def test_what_only_the_server_knows_is_left_to_it(jobs: Path) -> None:
    (jobs / "made.yaml").write_text("name: made\ntemplate: nightly\nwith: {hour: 3}\n")
    run("compile", "jobs", "--to", "out")
    assert json.loads(Path("out/jobs/made.json").read_text())["with"] == {"hour": 3}
    (jobs / "other.yaml").write_text("name: other\nrun: {operatorOfOurs: {}}\n")
    assert "operatorOfOurs" in run("compile", "jobs", "--to", "out", code=1).stderr
    run("compile", "jobs", "--to", "out", "--no-check")
    assert "jobs/other.json" in files()


@pytest.mark.parametrize("folder", ["jobs", "jobs/out"])
def test_it_is_not_written_where_it_would_be_read(folder: str) -> None:
    assert "would be read as job files" in run("compile", "jobs", "--to", folder, code=64).stderr


@pytest.mark.parametrize(
    ("text", "code"), [("no list", 1), ('{"files": ["../jobs/daily.py", "jobs/../../jobs/daily.py", "jobs/.."]}', 0)]
)
def test_a_list_that_somebody_else_wrote_removes_nothing(text: str, code: int) -> None:
    run("compile", "jobs", "--to", "out")
    Path("out/compiled.json").write_text(text)
    run("compile", "jobs/weekly.yaml", "--to", "out", code=code)
    assert Path("jobs/daily.py").exists()
    assert Path("out/jobs/daily-sales.json").exists()


def test_who_scans_the_folder_has_the_jobs_with_their_code() -> None:
    run("compile", "jobs", "--to", "out")
    with VirtualScheduler() as world:
        inner, namespace = world._world, world._namespace
        folder, filing = JobFolder(Path("out/jobs")), ApiFiling(inner, kinds=frozenset(KINDS), operators={})
        scanned = scan(inner, namespace, folder, filing)
        assert scanned.wrong == 1, "its code is not there yet"
        for path in Path("out/code").iterdir():
            inner.packs.keep(namespace, Pack(path.stem, path.read_bytes()))
        world.advance(minutes=2)
        for _ in range(2):
            scan(inner, namespace, folder, filing)
            assert world.job("daily-sales").version == 1


def test_packs_are_stored_one_after_the_other() -> None:
    run("compile", "jobs", "--to", "out")
    (pack,) = map(str, Path("out/code").iterdir())
    with scripted(Answer(200, {"sha256": "a" * 64, "size": 1})) as script:
        done = CliRunner().invoke(main, ["--url", script.url, "code", "put", pack, pack, "--json"])
    assert [one["size"] for one in json.loads(done.stdout)] == [1, 1]
