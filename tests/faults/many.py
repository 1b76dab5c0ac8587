"""Many runs, one after the other, as `python -m` starts them."""

from __future__ import annotations

import argparse
import asyncio
import shutil
import tempfile
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import uvloop

from tests.faults.seeds import first_seed
from tests.faults.telling import Judged

Play = Callable[[int, Path], Coroutine[Any, Any, Judged]]  # seed, a folder for logs and data


def main(program: str, doc: str | None, play: Play) -> int:
    """The exit status."""
    parser = argparse.ArgumentParser(prog=f"python -m {program}", description=doc)
    parser.add_argument(
        "seeds", type=int, nargs="?", default=1, help="how many runs, with seeds that follow each other"
    )
    given = parser.parse_args()
    first, bad = first_seed(), []
    for seed in range(first, first + given.seeds):
        print(f"FAULT_SEED={seed}", flush=True)
        if not _run(play, seed, Path(tempfile.mkdtemp(prefix=f"{program.rpartition('.')[2]}-{seed}-"))):
            bad.append(seed)
    print(f"{given.seeds - len(bad)} of {given.seeds} runs were well", f"; not: {bad}" if bad else "", sep="")
    return 1 if bad else 0


def _run(play: Play, seed: int, directory: Path) -> bool:
    """Whether all was well; tells either way."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        judged = runner.run(play(seed, directory))
    if judged.report:
        print(judged.report, f"\nLogs and data: {directory}", sep="\n", flush=True)
        return False
    print("well:", judged.summary, flush=True)
    shutil.rmtree(directory)
    return True
