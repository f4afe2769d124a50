"""`sweephand up --container-image`: of which images containers may be made."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.local.test_up import refused, up

PINNED = f"team/report@sha256:{'a' * 64}"


@pytest.mark.parametrize("engine", ["sqlite", "moto"])
def test_a_place_lists_the_images_that_may_be_named_and_can_ask_for_digests(tmp_path: Path, engine: str) -> None:
    listed = ["--containers-as-processes", "--container-image", "team/*@sha256:*", "--container-image", "tool:1.*"]
    with up(tmp_path / "data", "--no-examples", "--engine", engine, *listed) as place:
        for image, status in ((PINNED, 201), ("tool:1.2", 201), ("team/report:1", 400), (f"others/{PINNED}", 400)):
            name = f"job-{status}-{len(image)}"
            run = {"container": {"image": image, "command": ["true"]}}
            answer = place.client.post("/jobs", json={"name": name, "run": run})
            assert answer.status_code == status, answer.text
            if status == 400:
                assert [one["path"] for one in answer.json()["errors"]] == ["run.container.image"]


@pytest.mark.parametrize("wrong", ["", "a b", "$(x)"])
def test_an_entry_that_names_no_image_is_refused_before_it_starts(tmp_path: Path, wrong: str) -> None:
    assert "names no images" in refused(tmp_path / "data", "--container-image", wrong)
