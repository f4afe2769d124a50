"""Which images may run on Fargate, and in which sizes."""

from __future__ import annotations

from typing import Any

import pytest

from sweephand.domain.images import SIZES, Images, Permitted
from sweephand.domain.kinds import read_step
from sweephand.errors import InvalidInput

DIGEST = "sha256:" + "a" * 64
ALLOWED = Images.of(
    ["registry.example.org/team/*", "registry.example.org:5000/one", "tool:1.*", f"pinned@{DIGEST[:12]}*"],
    ["arm64", "x86_64"],
)


def refusal(images: Images, **spec: Any) -> str:
    """The field that is refused, empty where none is."""
    try:
        read_step({"container": {"image": "tool:1.0", **spec}}, "run", operators={"container": images.offer})
    except InvalidInput as refused:
        return refused.path or "?"
    return ""


@pytest.mark.parametrize(
    "image",
    [
        "registry.example.org/team/report",
        "registry.example.org/team/deep/report:1",
        f"registry.example.org/team/report@{DIGEST}",
        "registry.example.org:5000/one:latest",
        "tool:1.2",
        f"pinned@{DIGEST}",
    ],
)
def test_an_image_of_the_list_may_run(image: str) -> None:
    assert refusal(ALLOWED, image=image) == ""


@pytest.mark.parametrize(
    "image",
    [
        "registry.example.org/others/report",
        "registry.example.org.evil.test/team/report",
        "evil.test/registry.example.org/team/report",
        "registry.example.org:5000/one/more",
        "tool",
        "tool:2.0",
        "pinned",
        "pinned:1",
        f"tool@{DIGEST}",
        "${params.image}",
        "Tool:1.0",
        "tool:1.0 --privileged",
        "-v/:/host",
        "",
    ],
)
def test_any_other_is_refused(image: str) -> None:
    assert refusal(ALLOWED, image=image) == "run.container.image"


def test_by_default_no_image_may_run() -> None:
    assert refusal(Images.of([])) == "run.container.image"


@pytest.mark.parametrize("wrong", ["", "a b", "$(x)", "a\n"])
def test_an_entry_that_names_no_image_is_refused(wrong: str) -> None:
    with pytest.raises(InvalidInput):
        Images.of([wrong])


@pytest.mark.parametrize(
    ("image", "is_right"),
    [(f"any/thing@{DIGEST}", True), (f"tool:1@{DIGEST}", True), ("any/thing:1", False), ("tool", False)],
)
def test_a_list_can_ask_for_digests_only(image: str, is_right: bool) -> None:
    pinned = Permitted.of(["*@sha256:*"], option="list", remedy="Write '{}' into the list.")
    if is_right:
        pinned.check(image, "image")
        return
    with pytest.raises(InvalidInput, match=f"Write '{image}' into the list") as refused:
        pinned.check(image, "image")
    assert refused.value.path == "image"


def test_where_there_is_no_list_any_image_may_run_and_nothing_that_is_none() -> None:
    Permitted().check("any/thing:1", "image")
    with pytest.raises(InvalidInput, match="names no image"):
        Permitted().check("-v/:/host", "image")


def test_every_size_of_fargate_is_right_and_no_other() -> None:
    for cpu, memories in SIZES.items():
        assert refusal(ALLOWED, cpu=cpu) == ""
        for memory in memories:
            assert refusal(ALLOWED, cpu=cpu, memory=memory) == ""
            assert refusal(ALLOWED, cpu=cpu, memory=memory + 1) == "run.container.memory"
        assert refusal(ALLOWED, cpu=cpu, memory=memories[-1] * 2) == "run.container.memory"
    assert sum(map(len, SIZES.values())) == 3 + 4 + 7 + 13 + 23 + 12 + 12
    for cpu in (1, 100, 257, 3_072, 32_768):
        assert refusal(ALLOWED, cpu=cpu) == "run.container.cpu"


def test_disks_and_architectures_are_those_that_there_are() -> None:
    assert [refusal(ALLOWED, disk=disk) for disk in (21, 200)] == ["", ""]
    assert [refusal(ALLOWED, disk=disk) for disk in (20, 201)] == ["run.container.disk"] * 2
    assert refusal(ALLOWED, architecture="x86_64") == ""
    assert refusal(Images.of(["tool:*"]), architecture="x86_64") == "run.container.architecture"
    assert refusal(ALLOWED, architecture="sparc") == "run.container.architecture"
