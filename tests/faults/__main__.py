"""Many runs, one after the other: `python -m tests.faults [number of seeds]`, from FAULT_SEED on or a random one."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.faults.many import main
from tests.faults.run import Run
from tests.faults.seeds import seconds
from tests.faults.telling import Judged
from tests.faults.verdict import judge, report, summary


async def play(seed: int, directory: Path) -> Judged:
    outcome = await Run(seed, directory, seconds()).go()
    reading, violations = judge(outcome)
    return Judged(summary(outcome, reading), report(outcome, reading, violations) if violations else "")


if __name__ == "__main__":
    sys.exit(main("tests.faults", __doc__, play))
