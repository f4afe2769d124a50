"""A function has its folder, the two layers and the runtime, and must begin with those alone."""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
from pathlib import Path

from sweephand.topology import FUNCTIONS
from tests.infra.assembly import ROOT, Assembly

RUNTIME = ("boto3", "botocore", "s3transfer", "urllib3")
"""What Lambda's runtime brings."""

BEGIN = """
import json, sys, types
for path in sys.argv[1:]:
    module = types.ModuleType("handler")
    exec(compile(open(path).read(), path, "exec"), module.__dict__)
    assert callable(module.handler), path
    if hasattr(module, "api"):
        assert module.api.document["info"]["version"], path
print(json.dumps(sorted(name for name in sys.modules if "." not in name)))
"""


def _layer(assembly: Assembly, name: str) -> Path:
    (one,) = (one for one in assembly.of("Lambda::LayerVersion") if one.properties.get("LayerName", "").endswith(name))
    asset: str = one.whole["Metadata"]["aws:asset:path"]
    return assembly.folder / asset / "python"


def _like_the_vendor_layer(assembly: Assembly, folder: Path) -> Path:
    """The same packages, as they are installed here: those of the layer are built for another processor."""
    here = Path(sysconfig.get_path("platlib"))
    folder.mkdir()
    names = {path.name.split("-")[0].split(".")[0].lower() for path in _layer(assembly, "vendor").iterdir()}
    for path in here.iterdir():
        if path.name.split("-")[0].split(".")[0].lower() in names | set(RUNTIME):
            (folder / path.name).symlink_to(path)
    for path in _layer(assembly, "vendor").glob("sweephand-*.dist-info"):
        (folder / path.name).unlink(missing_ok=True)
        (folder / path.name).symlink_to(path)
    return folder


def test_every_function_begins_with_nothing_but_its_layers_and_the_runtime(assembly: Assembly, tmp_path: Path) -> None:
    paths = [_layer(assembly, "core"), _like_the_vendor_layer(assembly, tmp_path / "vendor")]
    handlers = [str(ROOT / "functions" / function.name / "handler.py") for function in FUNCTIONS]
    done = subprocess.run(
        [sys.executable, "-S", "-c", BEGIN, *handlers],
        env={
            "PYTHONPATH": ":".join(map(str, paths)),
            "PYTHONDONTWRITEBYTECODE": "1",  # the layers stay as they are
            "AWS_DEFAULT_REGION": "eu-west-1",
            "SWEEPHAND_ISSUER": "https://people.example.org",
            "SWEEPHAND_LIVE": "https://live.example.org/live",
        },
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert {"boto3", "sweephand"} <= set(json.loads(done.stdout))


def test_the_layer_says_nothing_of_the_machine_that_it_was_made_on(assembly: Assembly) -> None:
    for path in _layer(assembly, "vendor").glob("sweephand-*.dist-info/*"):
        if path.is_file():
            assert str(ROOT) not in path.read_text(), path


def test_a_layer_is_small_enough_to_start_fast(assembly: Assembly) -> None:
    sizes = {
        name: sum(path.stat().st_size for path in _layer(assembly, name).rglob("*") if path.is_file()) / 1e6
        for name in ("core", "vendor")
    }
    assert sizes["core"] < 5
    assert sizes["vendor"] < 40
