"""Many runs, one after the other: `python -m tests.faults.text [seeds]`, from FAULT_SEED on or a random one."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tests.faults.many import main
from tests.faults.telling import Judged
from tests.faults.text.run import SECONDS, Run
from tests.faults.text.verdict import verdict


async def play(seed: int, directory: Path) -> Judged:
    seconds = float(os.environ.get("FAULT_SECONDS") or SECONDS)
    return verdict(await Run(seed, directory, seconds).go())


if __name__ == "__main__":
    sys.exit(main("tests.faults.text", __doc__, play))
