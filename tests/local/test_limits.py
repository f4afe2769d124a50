"""As many connections as a process may have files open for."""

from __future__ import annotations

import resource
import subprocess
import sys

import pytest

CODE = """
import resource, sys
from sweephand.local.limits import Limits, with_room_for_files
resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[1]), int(sys.argv[2])))
limits = with_room_for_files(Limits())
print(resource.getrlimit(resource.RLIMIT_NOFILE)[0], limits.connections, limits.polls)
"""


@pytest.mark.parametrize(
    ("soft", "hard", "found"),
    [
        (1_024, 4_096, (2_560, 2_048, 1_536)),
        (3_000, 4_096, (3_000, 2_048, 1_536)),
        (256, 1_024, (1_024, 512, 384)),
        (256, 256, (256, 128, 96)),
    ],
)
def test_a_process_gives_itself_files_for_its_connections_or_takes_fewer(
    soft: int, hard: int, found: tuple[int, int, int]
) -> None:
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    assert most == resource.RLIM_INFINITY or most >= 4_096, "this machine allows too few open files"
    command = [sys.executable, "-c", CODE, str(soft), str(hard)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert tuple(map(int, said.split())) == found
