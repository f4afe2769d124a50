"""Job files: what is read, and what is refused with its file and line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from sweephand.cli.documents import found_in, read_all, read_one, to_yaml
from sweephand.errors import InvalidInput


def write(name: str, text: str) -> str:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return name


def refusal(*names: str) -> list[tuple[str, str]]:
    with pytest.raises(InvalidInput) as refused:
        read_all(names)
    return list(refused.value.errors)


def test_yaml_means_what_version_1_2_says() -> None:
    name = write("job.yaml", "name: a\non: yes\ndeadline: 07:00\noff: no\nn: 0777\nat: 2026-12-01T00:00:00Z\n")
    assert read_one(name) == {
        "name": "a",
        "on": "yes",
        "deadline": "07:00",
        "off": "no",
        "n": 777,
        "at": "2026-12-01T00:00:00Z",
    }


def test_a_file_may_hold_several_documents_each_named_by_its_number() -> None:
    name = write("jobs.yml", "name: a\n---\n---\nname: b\n")
    assert [(one.source, one.document["name"]) for one in read_all([name])] == [
        ("jobs.yml#1", "a"),
        ("jobs.yml#2", "b"),
    ]
    name = write("jobs.json", '[{"name": "c"}, {"name": "d"}]')
    assert [one.document["name"] for one in read_all([name])] == ["c", "d"]


def test_a_folder_is_its_job_files_without_hidden_ones() -> None:
    for name in ("jobs/b.json", "jobs/a.yaml", "jobs/deep/c.yml", "jobs/.hidden/d.yaml", "jobs/e.py", "jobs/README.md"):
        write(name, "{}")
    write("jobs/deep/makes.py", "from sweephand import job, task\n")
    write("jobs/also.py", "import sweephand\n@sweephand.job\ndef one(): ...\n")
    write("jobs/broken.py", "from sweephand import (\n")
    write("jobs/helper.py", "from sweephand import task\n")
    write("jobs/package/__init__.py", "")
    write("jobs/package/data.json", "{}")
    for name in ("test_makes.py", "tests/makes.py", "conftest.py", "__pycache__/makes.py", ".venv/makes.py"):
        write(f"jobs/{name}", "from sweephand import job\n")
    assert found_in(["jobs", "jobs/a.yaml"]) == [
        "jobs/a.yaml",
        "jobs/also.py",
        "jobs/b.json",
        "jobs/broken.py",
        "jobs/deep/c.yml",
        "jobs/deep/makes.py",
    ]
    Path("empty").mkdir()
    with pytest.raises(InvalidInput, match="holds no job files"):
        found_in(["empty"])


@pytest.mark.parametrize(
    ("name", "text", "where", "message"),
    [
        ("a.yaml", "name: a\ntimeout: 1\nname: b\n", "a.yaml:3", 'The field "name" is there twice.'),
        ("a.yaml", "name: a\nx: {b: 1, b: 2}\n", "a.yaml:2", 'The field "b" is there twice.'),
        ("a.json", '{"name": "a", "name": "b"}', "a.json", "The field 'name' is there twice."),
        ("a.json", '{"n": NaN}', "a.json", "NaN is not a number in JSON."),
        ("a.json", '{\n"n": \n}', "a.json:3", "It is not JSON"),
        ("a.yaml", "name: [\n", "a.yaml:2", "It is not YAML"),
        ("a.yaml", "name: !!python/object/apply:os.system [id]\n", "a.yaml:1", "It is not YAML"),
        ("a.yaml", "n: .nan\n", "a.yaml: n", "not a number"),
        ("a.yaml", "? [a, b]\n: 1\n", "a.yaml", "not text"),
        ("a.yaml", "- 1\n- 2\n", "a.yaml#1", "an object with fields"),
        ("a.yaml", "n: 2026-99-99\n", "a.yaml", "It is not YAML"),
        ("a.yaml", "# nothing\n", "a.yaml", "There is nothing in it."),
        ("a.yaml", "a: *b\n&b\n", "a.yaml:1", "names nothing"),
        ("a.yaml", "&a [*a]\n", "a.yaml:1", "names nothing"),
        ("a.yaml", "[" * 1_000_000, "a.yaml:1", "nested more than 32 levels"),
        ("a.json", "[" * 100_000, "a.json", "nested more than 32 levels"),
        ("a.py", "x = 1", "a.py", "It makes no job"),
        ("a.py", "x = 1\ny = x.z\n", "a.py:2", "AttributeError"),
        ("deep/a.py", "(", "deep/a.py:1", "It is not Python"),
        ("a.txt", "name: a", "a.txt", "ends in .yaml, .yml, .json or .py"),
    ],
)
def test_a_bad_file_is_refused_with_its_place(name: str, text: str, where: str, message: str) -> None:
    ((path, said),) = refusal(write(name, text))
    assert path == where
    assert message in said


def test_what_cannot_be_read_is_refused() -> None:
    Path("latin.yaml").write_bytes("name: Grüße".encode("latin-1"))
    Path("large.json").write_bytes(b" " * 8_388_609)
    errors = dict(refusal("gone.yaml", "latin.yaml", "large.json"))
    assert errors["gone.yaml"] == "It cannot be read: No such file or directory."
    assert errors["latin.yaml"] == "It is not UTF-8 text."
    assert "larger than" in errors["large.json"]


def laughs(levels: int, *, merged: bool = False) -> str:
    """A small file that is 10 to the power of `levels` long when its aliases are written out."""
    lines = ["l0: &l0 {lol: lol}" if merged else "l0: &l0 lol"]
    for level in range(1, levels):
        many = ", ".join([f"*l{level - 1}"] * 10)
        lines.append(f"l{level}: &l{level} {{<<: [{many}]}}" if merged else f"l{level}: &l{level} [{many}]")
    return "\n".join(lines)


@pytest.mark.parametrize("merged", [False, True])
def test_a_billion_laughs_are_refused_before_anybody_laughs(merged: bool) -> None:
    ((path, message),) = refusal(write("lol.yaml", laughs(10, merged=merged)))
    assert path == "lol.yaml"
    assert "With its aliases written out" in message


def test_a_modest_alias_is_fine() -> None:
    name = write("a.yaml", "base: &b {x: 1}\none: *b\ntwo: {<<: *b, y: 2}\n---\nbase: &b 1\ntwo: *b\n")
    first, second = (one.document for one in read_all([name]))
    assert first == {"base": {"x": 1}, "one": {"x": 1}, "two": {"x": 1, "y": 2}}
    assert second == {"base": 1, "two": 1}


def test_a_field_is_found_by_its_line() -> None:
    text = "name: a\n\ntasks:\n  - id: x\n    run:\n      command: [a]\n---\n- name: b\n- name: c\n  timeout: 1\n"
    first, second, third = read_all([write("a.yaml", text)])
    assert first.at("tasks[0].run.command[0]") == "a.yaml:6: tasks[0].run.command[0]"
    assert first.at("tasks[0].run.comand") == "a.yaml:5: tasks[0].run.comand"
    assert first.at("nothing") == "a.yaml:1: nothing"
    assert second.at("name") == "a.yaml:8: name"
    assert third.at("timeout") == "a.yaml:10: timeout"
    (plain,) = read_all([write("a.json", '{"name": "a"}')])
    assert plain.at("name") == "a.json: name"
    assert plain.at("") == "a.json"


def test_all_bad_files_are_named_at_once() -> None:
    write("jobs/a.yaml", "name: [\n")
    write("jobs/b.yaml", "name: fine\n")
    write("jobs/c.json", "{")
    assert [path for path, _ in refusal("jobs")] == ["jobs/a.yaml:2", "jobs/c.json:1"]


texts = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), max_size=20) | st.sampled_from(
    ["on", "yes", "~", "null", "07:00", "0 6 * * *", "2026-01-01", "1e3", "0x1f", "=", "<<", "- a", "a: b", "# no"]
)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | texts,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(texts.filter(lambda key: key != "<<"), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(st.dictionaries(st.from_regex(r"[a-z]{1,8}", fullmatch=True), values, max_size=5))
def test_what_is_exported_reads_back_the_same(document: dict[str, Any]) -> None:
    written = to_yaml(document)
    read = YAML(typ="safe", pure=True).load(written)
    assert read == document
    assert list(read) == list(document)
