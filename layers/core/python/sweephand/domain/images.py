"""Which images tasks may run, and in which sizes: a list that whoever operates the place has written.

An entry is the name of an image in which `*` stands for anything: `registry.example.org/team/*` means all of the team's
images in any version, `registry.example.org/team/report@sha256:*` only those that are named by their digest.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final, Self

from msgspec import Struct

from sweephand.domain.fields import shown
from sweephand.domain.kinds import Offer
from sweephand.errors import InvalidInput

__all__ = ["ARM", "CPU_DEFAULT", "MEMORY_DEFAULT", "SIZES", "X86", "Images", "Permitted"]

ARM: Final = "arm64"
X86: Final = "x86_64"
CPU_DEFAULT: Final = 256
MEMORY_DEFAULT: Final = 512
DISK: Final = range(21, 201)
"""Gigabytes that a task of Fargate can have besides the 20 that come with it."""
_GB: Final = 1_024

SIZES: Final[Mapping[int, tuple[int, ...]]] = MappingProxyType(
    {
        256: (512, _GB, 2 * _GB),
        512: tuple(range(_GB, 4 * _GB + 1, _GB)),
        1_024: tuple(range(2 * _GB, 8 * _GB + 1, _GB)),
        2_048: tuple(range(4 * _GB, 16 * _GB + 1, _GB)),
        4_096: tuple(range(8 * _GB, 30 * _GB + 1, _GB)),
        8_192: tuple(range(16 * _GB, 60 * _GB + 1, 4 * _GB)),
        16_384: tuple(range(32 * _GB, 120 * _GB + 1, 8 * _GB)),
    }
)
"""The sizes of Fargate: the memory in MB that goes with each number of CPU units, of which 1,024 are one CPU."""

_REMEDY: Final = "List it in the option containerImages of the deployment."
_PATTERN: Final = re.compile(r"[A-Za-z0-9*][A-Za-z0-9._:/@*-]{0,1023}", re.ASCII)
_IMAGE: Final = re.compile(
    r"(?P<name>[a-z0-9][A-Za-z0-9._-]*(:\d+)?(/[a-z0-9][a-z0-9._-]*)*)"
    r"(:(?P<tag>[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}))?(@(?P<digest>sha256:[0-9a-f]{64}))?",
    re.ASCII,
)


class Permitted(Struct, frozen=True):
    """The images that may run in a place; any image, where there is no list."""

    patterns: tuple[str, ...] | None = None
    remedy: str = ""
    """What allows another, where `{}` is its name."""

    @classmethod
    def of(cls, patterns: Iterable[str], *, option: str, remedy: str) -> Self:
        """The list as it was written; an entry that could name no image is refused."""
        return cls(_listed(patterns, option), remedy)

    def check(self, image: str, path: str) -> None:
        """Refuse what names no image, and one that is not in the list.

        A template is no part of a name, so that what runs is what was allowed.
        """
        if not _IMAGE.fullmatch(image):
            raise InvalidInput(f"{shown(image)} names no image: write it as registry.example.org/team/report:1.", path)
        if self.patterns is not None and not any(_covers(pattern, image) for pattern in self.patterns):
            remedy = self.remedy.format(image)
            raise InvalidInput(f"Tasks may not run the image {shown(image)} here. {remedy}", path)


class Images(Struct, frozen=True):
    """What containers may be made of on Fargate; by default, of nothing."""

    patterns: tuple[str, ...] = ()
    architectures: frozenset[str] = frozenset({ARM})

    @classmethod
    def of(cls, patterns: Iterable[str], architectures: Iterable[str] = (ARM,)) -> Self:
        """The list as it was written; an entry that could name no image is refused."""
        return cls(_listed(patterns, "containerImages"), frozenset(architectures))

    @property
    def offer(self) -> Offer:
        """`container` in a place with this list."""
        return Offer(self.read)

    def read(self, value: Mapping[str, Any], path: str) -> Mapping[str, Any]:
        """Refuse, when a job is saved, what could only be refused when it runs."""
        self.check(value, path)
        return value

    def check(self, spec: Mapping[str, Any], path: str) -> None:
        """Refuse an image that is not in the list, and a size that Fargate does not have."""
        Permitted(self.patterns, _REMEDY).check(str(spec.get("image", "")), f"{path}.image")
        cpu, memory = size_of(spec)
        if cpu not in SIZES:
            known = ", ".join(map(str, SIZES))
            raise InvalidInput(f"Fargate has no {cpu} CPU units, of which 1024 are one CPU: {known}.", f"{path}.cpu")
        if memory not in SIZES[cpu]:
            known = ", ".join(map(str, SIZES[cpu]))
            raise InvalidInput(f"With {cpu} CPU units Fargate has no {memory} MB of memory: {known}.", f"{path}.memory")
        disk = spec.get("disk")
        if disk is not None and disk not in DISK:
            raise InvalidInput(f"A disk on Fargate has {DISK[0]} to {DISK[-1]} GB, or leave it out.", f"{path}.disk")
        if architecture_of(spec) not in self.architectures:
            known = " or ".join(sorted(self.architectures))
            raise InvalidInput(f"Agents of this deployment are made for {known} only.", f"{path}.architecture")


def size_of(spec: Mapping[str, Any]) -> tuple[int, int]:
    """CPU units and MB of memory; the least memory of its CPU where only that is said."""
    cpu = spec.get("cpu")
    if cpu is None:
        cpu = CPU_DEFAULT
    memory = spec.get("memory")
    return cpu, SIZES.get(cpu, (MEMORY_DEFAULT,))[0] if memory is None else memory


def architecture_of(spec: Mapping[str, Any]) -> str:
    """What its image is made for."""
    return str(spec.get("architecture") or ARM)


def _listed(patterns: Iterable[str], option: str) -> tuple[str, ...]:
    listed = tuple(patterns)
    for one in listed:
        if not _PATTERN.fullmatch(one):
            message = f"{shown(one)} names no images: write it as registry.example.org/team/* or as an image."
            raise InvalidInput(message, option)
    return listed


def _covers(pattern: str, image: str) -> bool:
    """A pattern without a version means every version; `*` stands for anything but what separates name and version."""
    found = _IMAGE.fullmatch(image)
    is_whole = _is_versioned(pattern)
    subject = image if is_whole else (found["name"] if found else image)
    wild = re.escape(pattern).replace(r"\*", "[^@]*")
    return re.fullmatch(wild, subject) is not None


def _is_versioned(pattern: str) -> bool:
    return "@" in pattern or ":" in pattern.rpartition("/")[2]
