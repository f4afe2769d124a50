"""How hard Hypothesis looks, and what the simulation came to."""

from __future__ import annotations

import os
from collections import defaultdict
from statistics import median

import pytest
from hypothesis import HealthCheck, settings

# The same examples on every `make test`, many new ones under `make soak`.
# A slow machine is no defect, so no example has a deadline.
settings.register_profile(
    "test", deadline=None, derandomize=True, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("soak", settings.get_profile("test"), derandomize=False, max_examples=2000)
settings.load_profile("soak" if os.environ.get("SWEEPHAND_SOAK") == "1" else "test")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The figures of the simulated seeds and the mutants found, which tests hand over as properties."""
    seeds: dict[str, list[tuple[int, ...]]] = defaultdict(list)
    for report in terminalreporter.getreports("passed"):
        for name, value in report.user_properties:
            if name == "mutant":
                terminalreporter.write_line(f"found: {value}")
            elif name.startswith("seed "):
                seeds[name].append(tuple(value))
    for name, figures in seeds.items():
        jobs, fires, faults, crashes = (round(median(column)) for column in zip(*figures, strict=True))
        terminalreporter.write_line(
            f"simulated on {name.removeprefix('seed ')}: {len(figures)} seeds; the median has {jobs} jobs, "
            f"{fires} fires, {faults} faults, {crashes} crashes"
        )
