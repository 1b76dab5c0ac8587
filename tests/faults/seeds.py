"""The seed of a run: FAULT_SEED, to repeat a run, or a random one."""

from __future__ import annotations

import os
import random


def first_seed() -> int:
    return int(os.environ.get("FAULT_SEED") or random.randrange(1, 1_000_000))
