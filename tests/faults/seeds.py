"""What the environment says of a run: FAULT_SEED repeats one, FAULT_SECONDS shortens it for whoever works on it."""

from __future__ import annotations

import os
import random

from tests.faults.run import SECONDS


def first_seed() -> int:
    return int(os.environ.get("FAULT_SEED") or random.randrange(1, 1_000_000))


def seconds() -> float:
    return float(os.environ.get("FAULT_SECONDS") or SECONDS)
