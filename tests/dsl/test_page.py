"""The page about job files is true: its Python says what its YAML says, and its test passes."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from ruamel.yaml import YAML

from sweephand.cli.documents import read_all
from sweephand.domain.definition import document_of

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "files.md").read_text()
BLOCKS = dict(re.findall(r"```python\n# (\S+\.py)\n(.*?)```", PAGE, re.DOTALL))
(TEXT,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)


def test_the_pages_files_say_the_same(tmp_path: Path) -> None:
    (tmp_path / "sales.py").write_text(BLOCKS["sales.py"])
    (written,) = read_all([str(tmp_path / "sales.py")])
    assert document_of(written.document) == document_of(YAML(typ="safe", pure=True).load(TEXT))


def test_the_pages_test_passes(tmp_path: Path) -> None:
    assert BLOCKS.keys() == {"sales.py", "test_sales.py"}
    for name, text in BLOCKS.items():
        (tmp_path / name).write_text(text)
    subprocess.run([sys.executable, "test_sales.py"], cwd=tmp_path, check=True)
