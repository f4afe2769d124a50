"""The two layers: our code, and other people's, which changes rarely."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from sweephand.topology import Names

ROOT: Final = Path(__file__).resolve().parent.parent
RUNTIME: Final = lambda_.Runtime.PYTHON_3_13
ARCHITECTURE: Final = lambda_.Architecture.ARM_64
VENDOR: Final = ROOT / "build" / "vendor"
"""Where `make vendor` puts what layers/vendor/requirements.txt pins: wheels, so that no Docker is needed."""

_NOT_DEPLOYED: Final = ("agent", "cli", "client", "local", "testing")
"""Parts of the package that only run on people's machines."""


class Layers(Construct):
    """Both for every function."""

    def __init__(self, scope: Construct, id_: str, *, names: Names) -> None:
        super().__init__(scope, id_)
        if not (VENDOR / "python").is_dir():
            raise FileNotFoundError("build/vendor/python is missing: run `make vendor` first.")
        left_out = [f"python/sweephand/{part}" for part in _NOT_DEPLOYED]
        core = lambda_.Code.from_asset(str(ROOT / "layers" / "core"), exclude=["**/__pycache__", *left_out])
        vendor = lambda_.Code.from_asset(str(VENDOR))
        self.all = [self._layer("Core", names, core), self._layer("Vendor", names, vendor)]

    def _layer(self, id_: str, names: Names, code: lambda_.Code) -> lambda_.LayerVersion:
        return lambda_.LayerVersion(
            self,
            id_,
            layer_version_name=names.of(id_.lower()),
            code=code,
            compatible_runtimes=[RUNTIME],
            compatible_architectures=[ARCHITECTURE],
        )
