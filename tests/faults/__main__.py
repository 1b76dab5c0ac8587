"""Many runs, one after the other: `python -m tests.faults [number of seeds]`, from FAULT_SEED on or a random one."""

from __future__ import annotations

import argparse
import asyncio
import shutil
import sys
import tempfile
from pathlib import Path

import uvloop

from tests.faults.run import Run
from tests.faults.seeds import first_seed, seconds
from tests.faults.verdict import judge, report, summary


def run(seed: int, directory: Path) -> bool:
    """Whether all was well; tells either way."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        outcome = runner.run(Run(seed, directory, seconds()).go())
    reading, violations = judge(outcome)
    if violations:
        print(report(outcome, reading, violations), f"\nLogs and data: {directory}", sep="\n", flush=True)
    else:
        print("well:", summary(outcome, reading), flush=True)
        shutil.rmtree(directory)
    return not violations


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument(
        "seeds", type=int, nargs="?", default=1, help="how many runs, with seeds that follow each other"
    )
    given = parser.parse_args()
    first, bad = first_seed(), []
    for seed in range(first, first + given.seeds):
        print(f"FAULT_SEED={seed}", flush=True)
        directory = Path(tempfile.mkdtemp(prefix=f"faults-{seed}-"))
        if not run(seed, directory):
            bad.append(seed)
    print(f"{given.seeds - len(bad)} of {given.seeds} runs were well", f"; not: {bad}" if bad else "", sep="")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
