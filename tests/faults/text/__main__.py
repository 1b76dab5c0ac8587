"""Many runs, one after the other: `python -m tests.faults.text [seeds]`, from FAULT_SEED on or a random one."""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import sys
import tempfile
from pathlib import Path

import uvloop

from tests.faults.seeds import first_seed
from tests.faults.text.run import SECONDS, Run
from tests.faults.text.verdict import judge, report, summary


def run(seed: int, directory: Path) -> bool:
    """Whether all was well; tells either way."""
    seconds = float(os.environ.get("FAULT_SECONDS") or SECONDS)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        outcome = runner.run(Run(seed, directory, seconds).go())
    violations = judge(outcome)
    if violations:
        print(report(outcome, violations), f"\nLogs and data: {directory}", sep="\n", flush=True)
    else:
        print("well:", summary(outcome), flush=True)
        shutil.rmtree(directory)
    return not violations


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults.text", description=__doc__)
    parser.add_argument(
        "seeds", type=int, nargs="?", default=1, help="how many runs, with seeds that follow each other"
    )
    given = parser.parse_args()
    first, bad = first_seed(), []
    for seed in range(first, first + given.seeds):
        print(f"FAULT_SEED={seed}", flush=True)
        if not run(seed, Path(tempfile.mkdtemp(prefix=f"ring-{seed}-"))):
            bad.append(seed)
    print(f"{given.seeds - len(bad)} of {given.seeds} runs were well", f"; not: {bad}" if bad else "", sep="")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
