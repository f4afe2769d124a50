"""Zips of code: what is made is always the same, and what is bad is refused before and while it is unpacked."""

from __future__ import annotations

import io
import stat
import struct
import zipfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweephand.domain.zips import FILES_MAX, UNPACKED_BYTES_MAX, check_zip, contents, digest_of, zipped
from sweephand.errors import InvalidInput

FILES = {"b.py": b"b", "a/__init__.py": b"", "a/deep/c.txt": b"\x00" * 5_000}


def unpacked(content: bytes) -> dict[str, bytes]:
    return {name: b"".join(chunks) for name, chunks in contents(content)}


def written(*entries: tuple[zipfile.ZipInfo | str, bytes]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, content in entries:
            archive.writestr(name, content)
    return made.getvalue()


def entry(name: str, mode: int = stat.S_IFREG | 0o644, **about: int) -> zipfile.ZipInfo:
    made = zipfile.ZipInfo("x")
    made.filename = made.orig_filename = name
    made.external_attr = mode << 16
    for field, value in about.items():
        setattr(made, field, value)
    return made


def test_the_same_files_make_the_same_bytes_in_any_order() -> None:
    content = zipped(FILES)
    assert zipped(dict(reversed(FILES.items()))) == content
    assert unpacked(content) == FILES
    check_zip(content)


def test_the_bytes_are_these_on_every_machine() -> None:
    """Nothing of the moment, of the machine or of a compressor is in them."""
    assert digest_of(zipped({"a.py": b"x = 1\n"})) == "61f1fa9a333b6a85f2ca81415ee8712def6b23b695b6ba7b21e97da17f7f6079"


def test_large_foreign_files_may_be_deflated() -> None:
    content = zipped(FILES, deflated=frozenset({"a/deep/c.txt"}))
    assert len(content) < 1_000
    assert unpacked(content) == FILES


@given(st.dictionaries(st.text("abc_", min_size=1, max_size=8), st.binary(max_size=200), max_size=5))
def test_what_was_packed_is_unpacked(files: dict[str, bytes]) -> None:
    assert unpacked(zipped(files)) == files


BAD = {
    "no zip": (b"not a zip", "no zip"),
    "empty": (b"", "no zip"),
    "cut off": (zipped(FILES)[:-30], "no zip"),
    "above": (written((entry("../up.py"), b"")), "would not stay in its folder"),
    "above, later": (written((entry("a/../../up.py"), b"")), "would not stay in its folder"),
    "absolute": (written((entry("/etc/passwd"), b"")), "would not stay in its folder"),
    "a drive": (written((entry("C:x"), b"")), "would not stay in its folder"),
    "here": (written((entry("./a"), b"")), "would not stay in its folder"),
    "doubled slash": (written((entry("a//b"), b"")), "would not stay in its folder"),
    "backslash": (written((entry("a\\..\\b"), b"")), "not every machine"),
    "a line's end": (written((entry("a\nb"), b"")), "not every machine"),
    "long": (written((entry("a" * 600), b"")), "not every machine"),
    "link": (written((entry("a", stat.S_IFLNK | 0o777), b"/etc/passwd")), "neither a file nor a folder"),
    "device": (written((entry("a", stat.S_IFCHR | 0o600), b"")), "neither a file nor a folder"),
    "both": (written((entry("a"), b""), (entry("a/b"), b"")), "is a file and a folder"),
    "unknown method": (written((entry("a", compress_type=zipfile.ZIP_LZMA), b"x" * 99)), "store it, or deflate it"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_zip_is_refused(case: str) -> None:
    content, why = BAD[case]
    for use in (check_zip, unpacked):
        with pytest.raises(InvalidInput, match=why) as refused:
            use(content)
        assert refused.value.path == "content"


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_name_that_is_there_twice_is_refused() -> None:
    with pytest.raises(InvalidInput, match="twice"):
        check_zip(written((entry("a"), b"1"), (entry("a"), b"2")))


def test_an_encrypted_entry_is_refused() -> None:
    content = bytearray(written((entry("a"), b"x")))
    at = content.index(b"PK\x01\x02")
    content[at + 8] |= 1
    with pytest.raises(InvalidInput, match="encrypted"):
        check_zip(bytes(content))


def test_a_bomb_is_refused_by_what_it_announces() -> None:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for n in range(3):
            with archive.open(f"zeros-{n}", "w") as file:
                for _ in range(100):
                    file.write(bytes(1024 * 1024))
    assert len(made.getvalue()) < 2 * 1024 * 1024
    with pytest.raises(InvalidInput, match=f"{UNPACKED_BYTES_MAX:,}"):
        check_zip(made.getvalue())


def test_a_bomb_that_lies_about_its_size_is_stopped_where_it_said_it_ends() -> None:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zeros", bytes(10_000_000))
    content = bytearray(made.getvalue())
    struct.pack_into("<L", content, content.index(b"PK\x01\x02") + 24, 10)
    check_zip(bytes(content))
    with pytest.raises(InvalidInput, match="damaged"):
        unpacked(bytes(content))


def test_entries_that_share_their_bytes_are_refused() -> None:
    content = bytearray(written(*((entry(f"{n}.bin"), b"x" * 1_000) for n in range(4))))
    at = 0
    while (at := content.find(b"PK\x01\x02", at)) >= 0:
        struct.pack_into("<L", content, at + 20, 2_000)
        at += 4
    with pytest.raises(InvalidInput, match="overlap"):
        check_zip(bytes(content))


def test_too_many_files_are_refused() -> None:
    with pytest.raises(InvalidInput, match=f"{FILES_MAX:,} are the most"):
        check_zip(zipped({f"{n}.py": b"" for n in range(FILES_MAX + 1)}))


def test_a_damaged_file_is_refused_when_it_is_read() -> None:
    content = zipped({"a.py": b"x = 1\n"}).replace(b"x = 1", b"x = 2")
    with pytest.raises(InvalidInput, match="damaged"):
        unpacked(content)
