"""Many runs, one after the other: `python -m tests.faults.ring [seeds]`, from FAULT_SEED on or a random one."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tests.faults.many import main
from tests.faults.ring.run import SECONDS, Run
from tests.faults.ring.verdict import verdict
from tests.faults.telling import Judged


async def play(seed: int, directory: Path) -> Judged:
    seconds = float(os.environ.get("FAULT_SECONDS") or SECONDS)
    return verdict(await Run(seed, directory, seconds).go())


if __name__ == "__main__":
    sys.exit(main("tests.faults.ring", __doc__, play))
