"""`python -m sweephand.dsl FILE RESULT`: run a job file, and write what it says to another file as JSON.

In a process of its own: nothing of a user's is ever imported where jobs are applied or scheduled.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from sweephand.dsl.files import compiled

if __name__ == "__main__":
    Path(sys.argv[2]).write_text(json.dumps(compiled(Path(sys.argv[1]))))
