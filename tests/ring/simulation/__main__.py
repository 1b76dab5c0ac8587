"""Run seeds by hand: `python -m tests.ring.simulation SEED [count]`. A single seed prints its events."""

from __future__ import annotations

import sys
import time

from tests.ring.simulation.trial import run_seed


def main() -> int:
    if len(sys.argv) not in (2, 3):
        print(__doc__)
        return 2
    first, count = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) == 3 else 1
    story: list[str] | None = [] if count == 1 else None
    began, failed = time.process_time(), 0
    settled = []
    for seed in range(first, first + count):
        verdict = run_seed(seed, story)
        settled.append(verdict.settled_s)
        print("\n".join(story or []), end="\n" if story else "")
        failed += bool(verdict.wrong)
        for wrong in verdict.wrong:
            print(f"seed {seed}: {wrong}")
    settled.sort()
    print(
        f"{count} seeds, {failed} with something wrong, {time.process_time() - began:.1f} s of CPU;"
        f" settled after {settled[len(settled) // 2]:.0f} s (median), {settled[-1]:.0f} s (longest)"
    )
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
