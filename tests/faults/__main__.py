"""Run many fault runs one after the other: `python -m tests.faults tmq|text|rqp|ring [seeds]`.

Seeds count up from FAULT_SEED, or from a random one. FAULT_SECONDS sets how long each run injects faults.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import uvloop

from tests.faults import run as tmq
from tests.faults import verdict as tmq_verdict
from tests.faults.ring import run as ring
from tests.faults.ring import verdict as ring_verdict
from tests.faults.rqp import run as rqp
from tests.faults.rqp import verdict as rqp_verdict
from tests.faults.run_report import Judged
from tests.faults.seeds import first_seed
from tests.faults.text import run as text
from tests.faults.text import verdict as text_verdict

Play = Callable[[int, Path], Coroutine[Any, Any, Judged]]  # arguments: seed, folder for logs and data


def seconds(usual: float) -> float:
    return float(os.environ.get("FAULT_SECONDS") or usual)


async def play_tmq(seed: int, directory: Path) -> Judged:
    outcome = await tmq.Run(seed, directory, seconds(tmq.SECONDS)).go()
    reading, violations = tmq_verdict.judge(outcome)
    reported = tmq_verdict.report(outcome, reading, violations) if violations else ""
    return Judged(tmq_verdict.summary(outcome, reading), reported)


async def play_text(seed: int, directory: Path) -> Judged:
    return text_verdict.verdict(await text.Run(seed, directory, seconds(text.SECONDS)).go())


async def play_rqp(seed: int, directory: Path) -> Judged:
    return rqp_verdict.verdict(await rqp.Run(seed, directory, seconds(rqp.SECONDS)).go())


async def play_ring(seed: int, directory: Path) -> Judged:
    return ring_verdict.verdict(await ring.Run(seed, directory, seconds(ring.SECONDS)).go())


PLAYS: dict[str, Play] = {"tmq": play_tmq, "text": play_text, "rqp": play_rqp, "ring": play_ring}


def main() -> int:
    """Run all seeds and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("what", choices=PLAYS)
    parser.add_argument(
        "seeds", type=int, nargs="?", default=1, help="how many runs, with seeds that follow each other"
    )
    given = parser.parse_args()
    first, bad = first_seed(), []
    for seed in range(first, first + given.seeds):
        print(f"FAULT_SEED={seed}", flush=True)
        if not _run(PLAYS[given.what], seed, Path(tempfile.mkdtemp(prefix=f"{given.what}-{seed}-"))):
            bad.append(seed)
    print(f"{given.seeds - len(bad)} of {given.seeds} runs were well", f"; not: {bad}" if bad else "", sep="")
    return 1 if bad else 0


def _run(play: Play, seed: int, directory: Path) -> bool:
    """Print the outcome of one run and return whether it found no violations."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        judged = runner.run(play(seed, directory))
    if judged.report:
        print(judged.report, f"\nLogs and data: {directory}", sep="\n", flush=True)
        return False
    print("well:", judged.summary, flush=True)
    shutil.rmtree(directory)
    return True


if __name__ == "__main__":
    sys.exit(main())
