"""What the CDK app makes of some options: the real command's output, read back."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from infra.console import ELSEWHERE
from infra.node import command, environment

ROOT: Final = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Resource:
    """One resource of a template."""

    id: str
    kind: str
    properties: Mapping[str, Any]
    whole: Mapping[str, Any]

    def __str__(self) -> str:
        return f"{self.kind} {self.id}"


@dataclass(frozen=True)
class Assembly:
    """Both stacks, as if they were one: what one imports from the other is shown as what the other exports."""

    folder: Path

    @cached_property
    def templates(self) -> dict[str, Any]:
        """By the end of their names: `Data` and `App`."""
        found = {path: json.loads(path.read_text()) for path in sorted(self.folder.glob("*.template.json"))}
        return {"Data" if "Data." in path.name else "App": template for path, template in found.items()}

    @cached_property
    def _exports(self) -> dict[str, Any]:
        outputs = self.templates["Data"].get("Outputs", {}).values()
        return {output["Export"]["Name"]: output["Value"] for output in outputs if "Export" in output}

    @cached_property
    def resources(self) -> list[Resource]:
        return [
            Resource(id_, whole["Type"], self._joined(whole.get("Properties", {})), whole)
            for template in self.templates.values()
            for id_, whole in template["Resources"].items()
        ]

    def of(self, kind: str) -> list[Resource]:
        """The resources of a type, such as `SQS::Queue`; there is at least one."""
        found = [resource for resource in self.resources if resource.kind == f"AWS::{kind}"]
        assert found, f"There is no {kind}."
        return found

    def of_custom(self, kind: str) -> list[Resource]:
        """The resources of a type of CDK's own."""
        return [resource for resource in self.resources if resource.kind == f"Custom::{kind}"]

    def only(self, kind: str) -> Resource:
        (one,) = self.of(kind)
        return one

    def named(self, kind: str, by: str) -> dict[str, Resource]:
        """The resources of a type, by a property that names them."""
        return {resource.properties[by]: resource for resource in self.of(kind)}

    def _joined(self, value: Any) -> Any:
        if isinstance(value, dict):
            if set(value) == {"Fn::ImportValue"}:
                return self._exports[value["Fn::ImportValue"]]
            return {key: self._joined(one) for key, one in value.items()}
        return [self._joined(one) for one in value] if isinstance(value, list) else value


def console(folder: Path) -> Path:
    """What stands for the built console, so that no template depends on whether one was built here."""
    for name in ("index.html", "favicon.svg", "assets/index-0123abcd.js"):
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(f"This is {name}.")
    return folder


def synthesized(
    folder: Path, context: Mapping[str, str] | None = None, *, site: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """What `make synth` does, into this folder."""
    site = site or console(folder.with_name(f"{folder.name}-console"))
    chosen = [part for key, value in (context or {}).items() for part in ("-c", f"{key}={value}")]
    return subprocess.run(
        command("cdk", "synth", "--quiet", "--output", str(folder), *chosen),
        cwd=ROOT,
        env={**environment(), ELSEWHERE: str(site)},
        capture_output=True,
        text=True,
        check=False,
    )


def texts_of(value: Any) -> Iterator[str]:
    """Every text in it, however deep."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from texts_of(one)
    elif isinstance(value, list):
        for one in value:
            yield from texts_of(one)


def statements_of(resource: Resource) -> Iterator[Mapping[str, Any]]:
    """Every statement of every policy in a resource, except who may take a role."""
    for key, value in _walk(resource.properties):
        if key.endswith(("PolicyDocument", "KeyPolicy")) and key != "AssumeRolePolicyDocument":
            yield from value["Statement"]


def _walk(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, one in value.items():
            yield key, one
            yield from _walk(one)
    elif isinstance(value, list):
        for one in value:
            yield from _walk(one)


def listed(value: Any) -> Sequence[Any]:
    """CloudFormation writes a list of one as the one."""
    return value if isinstance(value, list) else [value]
