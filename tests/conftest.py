"""How hard Hypothesis looks: the same examples on every `make test`, many new ones under `make soak`."""

import os

from hypothesis import HealthCheck, settings

# A slow machine is no defect, so no example has a deadline.
settings.register_profile(
    "test", deadline=None, derandomize=True, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("soak", settings.get_profile("test"), derandomize=False, max_examples=2000)
settings.load_profile("soak" if os.environ.get("SWEEPHAND_SOAK") == "1" else "test")
