"""What a Python job file needs, packed: the same bytes from the same sources, and nothing that does not belong."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import zipfile
from base64 import urlsafe_b64encode
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from sweephand.cli.documents import read_all
from sweephand.cli.packing import Packer, modules_of, with_code
from sweephand.cli.python_files import Needs
from sweephand.domain.zips import check_zip
from sweephand.errors import InvalidInput

JOBS = """
from sweephand import job, task
import helper

@task
def load():
    import late
    return helper.x

@job
def sales(): load()
"""

HERE: dict[str, Any] = {"python": f"{sys.version_info.major}.{sys.version_info.minor}", "wheels": []}


def write(name: str, text: str | bytes = "") -> Path:
    path = Path("jobs") / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def needs(file: str = "jobs/sales.py") -> Needs:
    (one, *_) = read_all([file])
    assert one.needs is not None
    return one.needs


def packed(given: Needs, target: dict[str, Any] | None = None) -> dict[str, bytes]:
    content = Packer(lambda: target or HERE).pack(given).content
    check_zip(content)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.fixture
def folder() -> None:
    write("sales.py", JOBS)
    write("helper.py", "from lib.deep import thing\nx = 1\n")
    write("late.py", "")
    write("unused.py", "")
    write("lib/__init__.py")
    write(
        "lib/deep.py", "from . import other\nthing = 1\nimport json, no_such_module\n".replace(", no_such_module", "")
    )
    write("lib/other.py", "")
    write("lib/query.sql", "select 1")
    for left_out in (
        "lib/__pycache__/deep.cpython-313.pyc",
        "lib/tests/test_deep.py",
        "lib/test_other.py",
        "lib/other_test.py",
        "lib/conftest.py",
        "lib/.git/config",
        "lib/.hidden",
        "lib/stale.pyc",
        "lib/lib.egg-info/PKG-INFO",
        "lib/env/pyvenv.cfg",
        "lib/env/bin/python.py",
    ):
        write(left_out, "x")


@pytest.mark.usefixtures("folder")
def test_a_pack_has_the_file_and_what_it_imports_of_its_folder() -> None:
    assert packed(needs()).keys() == {
        "sales.py",
        "helper.py",
        "late.py",
        "lib/__init__.py",
        "lib/deep.py",
        "lib/other.py",
        "lib/query.sql",
    }


@pytest.mark.usefixtures("folder")
def test_the_same_sources_make_the_same_pack_whenever_and_wherever(tmp_path: Path) -> None:
    first = Packer(lambda: HERE).pack(needs()).digest
    for path in Path("jobs").rglob("*"):
        os.utime(path, (1, 1))
        path.chmod(0o700)
    subprocess.run(["cp", "-r", "jobs", "elsewhere"], check=True)
    assert Packer(lambda: HERE).pack(needs("elsewhere/sales.py")).digest == first
    write("unused.py", "x = 2")
    write("lib/tests/test_deep.py", "x = 2")
    assert Packer(lambda: HERE).pack(needs()).digest == first
    write("lib/query.sql", "select 2")
    assert Packer(lambda: HERE).pack(needs()).digest != first


@pytest.mark.usefixtures("folder")
def test_reading_a_file_leaves_nothing_behind() -> None:
    before = sorted(Path("jobs").rglob("*"))
    read_all(["jobs"])
    assert sorted(Path("jobs").rglob("*")) == before


def test_a_file_of_a_package_is_packed_with_its_package() -> None:
    write("team/__init__.py")
    write(
        "team/sales.py",
        "from sweephand import job, task\nfrom .words import x\n@task\ndef a(): ...\n@job\ndef b(): a()\n",
    )
    write("team/words.py", "x = 1")
    (one,) = read_all(["jobs/team/sales.py"])
    assert one.document["tasks"][0]["run"] == {"python": "team.sales:a"}
    assert one.needs is not None
    assert packed(one.needs).keys() == {"team/__init__.py", "team/sales.py", "team/words.py"}


def test_only_functions_of_the_folder_get_code() -> None:
    write(
        "sales.py",
        "from sweephand import job, step, task\n@task\ndef a(): ...\n"
        "@job\ndef b():\n    a()\n    step('c', python='installed:f')\n    step('d', command=['x'])\n"
        f"    step('e', python='sales:a', code='{'0' * 64}')\n",
    )
    (one,) = read_all(["jobs/sales.py"])
    assert one.needs is not None
    pack = Packer(lambda: HERE).pack(one.needs)
    document = with_code(one.document, one.needs, pack)
    assert [task["run"].get("code") for task in document["tasks"]] == [pack.digest, None, None, "0" * 64]


def test_a_link_out_of_the_folder_is_refused() -> None:
    write("sales.py", "from sweephand import job, task\nimport lib\n@task\ndef a(): ...\n@job\ndef b(): a()\n")
    write("lib/__init__.py")
    Path("secret.txt").write_text("secret")
    (Path("jobs") / "lib" / "x.txt").symlink_to(Path("secret.txt").resolve())
    with pytest.raises(InvalidInput, match="link out of the folder") as refused:
        modules_of(Path("jobs").resolve(), ["lib"])
    assert refused.value.path == "jobs/lib/x.txt"


def test_too_much_code_is_refused_with_the_largest_file() -> None:
    write("lib/__init__.py")
    with (write("lib/large.bin")).open("wb") as file:
        file.truncate(65 * 1024 * 1024)
    with pytest.raises(InvalidInput, match=r"67,108,864 are the most; the largest file is lib/large.bin"):
        Packer(lambda: HERE).pack(Needs(Path("jobs").resolve(), ("lib",), None))


# What is run, and how.


def test_what_a_file_prints_and_how_it_ends_is_its_own() -> None:
    write("talks.py", "print('x' * 100_000)\n" + JOBS.replace("import helper", "").replace("helper.x", "1"))
    assert [one.document["name"] for one in read_all(["jobs/talks.py"])] == ["sales"]
    write("dies.py", "import os\nprint('last words', flush=True)\nos._exit(3)\n")
    with pytest.raises(InvalidInput) as refused:
        read_all(["jobs/dies.py"])
    assert refused.value.errors == (("jobs/dies.py", "It ended the process that read it (3): last words"),)


def test_a_file_is_told_no_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWEEPHAND_TOKEN", "swh_secret")
    asks = "step('x', command=[str(os.environ.get('SWEEPHAND_TOKEN'))])"
    write("asks.py", f"import os\nfrom sweephand import job, step\n@job\ndef a(): {asks}\n")
    assert read_all(["jobs/asks.py"])[0].document["tasks"][0]["run"] == {"command": ["None"]}


def test_nothing_of_a_file_is_imported_here() -> None:
    write("marked_module.py", JOBS.replace("import helper", "").replace("helper.x", "1"))
    read_all(["jobs/marked_module.py"])
    assert "marked_module" not in sys.modules
    assert str(Path("jobs").resolve()) not in sys.path


def test_an_error_is_named_as_the_file_was() -> None:
    write("sales.py", "import lib.bad\n")
    write("lib/bad.py", "x = 1\n1 / 0\n")
    with pytest.raises(InvalidInput) as refused:
        read_all(["jobs/sales.py"])
    assert refused.value.errors == (("jobs/lib/bad.py:2", "ZeroDivisionError: division by zero"),)


# Packages.


def wheel(name: str, tag: str = "py3-none-any") -> tuple[Path, str]:
    """A package with one module, and its line for a lock."""
    module = f"def told(): return '{name}'\n".encode()
    about = f"{name}-1.0.dist-info"
    files = {
        f"{name}.py": module,
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n".encode(),
        f"{about}/WHEEL": f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {tag}\n".encode(),
    }
    lines = [
        f"{path},sha256={urlsafe_b64encode(sha256(content).digest()).rstrip(b'=').decode()},{len(content)}"
        for path, content in files.items()
    ]
    files[f"{about}/RECORD"] = "\n".join([*lines, f"{about}/RECORD,,\n"]).encode()
    Path("wheels").mkdir(exist_ok=True)
    made = Path("wheels") / f"{name}-1.0-{tag}.whl"
    with zipfile.ZipFile(made, "w") as archive:
        for path, content in files.items():
            archive.writestr(path, content)
    return made, f"{name}==1.0 \\\n    --hash=sha256:{sha256(made.read_bytes()).hexdigest()}\n"


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "wheels"))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)


@pytest.mark.usefixtures("index")
def test_locked_packages_are_packed_beside_the_modules_and_always_the_same() -> None:
    write("sales.py", "from sweephand import job, task\n@task\ndef a(): ...\n@job\ndef b(): a()\n")
    write("requirements.txt", "# what it needs\n" + wheel("thirdparty")[1])
    found = needs()
    assert packed(found).keys() == {
        "sales.py",
        "thirdparty.py",
        "thirdparty-1.0.dist-info/METADATA",
        "thirdparty-1.0.dist-info/WHEEL",
    }
    assert Packer(lambda: HERE).pack(found) == Packer(lambda: HERE).pack(found)


@pytest.mark.usefixtures("index")
def test_wheels_are_those_of_the_targets_platform() -> None:
    write("sales.py", "from sweephand import job, task\n@task\ndef a(): ...\n@job\ndef b(): a()\n")
    on_lambda = {"python": "3.13", "wheels": ["manylinux2014_aarch64", "manylinux_2_28_aarch64"]}
    line = wheel("native", "cp313-cp313-manylinux2014_aarch64")[1]
    write("requirements.txt", line)
    assert "native.py" in packed(needs(), on_lambda)
    elsewhere = {"python": "3.13", "wheels": ["manylinux2014_x86_64"]}
    with pytest.raises(
        InvalidInput, match=r"pip cannot install its wheels for Python 3.13 on manylinux2014_x86_64"
    ) as refused:
        packed(needs(), elsewhere)
    assert refused.value.path == "jobs/requirements.txt"


@pytest.mark.usefixtures("index")
def test_a_package_that_is_not_the_locked_one_is_refused() -> None:
    write("sales.py", "from sweephand import job, task\n@task\ndef a(): ...\n@job\ndef b(): a()\n")
    made, line = wheel("thirdparty")
    write("requirements.txt", line)
    with zipfile.ZipFile(made, "a") as archive:
        archive.writestr("more.py", "")
    with pytest.raises(InvalidInput, match=r"(?i)hash"):
        packed(needs())


@pytest.mark.usefixtures("index")
def test_a_module_that_is_also_in_a_package_is_refused() -> None:
    write("sales.py", "from sweephand import job, task\nimport thirdparty\n@task\ndef a(): ...\n@job\ndef b(): a()\n")
    write("thirdparty.py")
    write("requirements.txt", wheel("thirdparty")[1])
    with pytest.raises(InvalidInput, match=r"thirdparty.py is here and in a package of jobs/requirements.txt"):
        packed(needs())


@pytest.mark.parametrize(
    ("text", "line"), [("requests\n", 1), ("# x\n\na==1 \\\n    --hash=sha256:00\nb==2\n", 5), ("a==1 \\\n  ; x\n", 1)]
)
def test_a_list_without_hashes_is_no_lock(text: str, line: int) -> None:
    write("sales.py", "from sweephand import job, task\n@task\ndef a(): ...\n@job\ndef b(): a()\n")
    write("requirements.txt", text)
    with pytest.raises(InvalidInput, match="has no hash: lock the file") as refused:
        packed(needs())
    assert refused.value.path == f"jobs/requirements.txt:{line}"


def test_an_empty_list_asks_for_nothing() -> None:
    write("sales.py", "from sweephand import job, task\n@task\ndef a(): ...\n@job\ndef b(): a()\n")
    write("requirements.txt", "# nothing yet\n")
    assert packed(needs()).keys() == {"sales.py"}
