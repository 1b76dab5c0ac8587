"""Alarms: what the store tells its observer that no request asked for, and that somebody should look at."""

from __future__ import annotations

ROLLED_BACK = "store_rolled_back"  # it knows less than it had acknowledged
NEW_GENERATION = "new_generation"  # its data goes on, or begins, as another one
COUNTER_MISMATCH = "counter_mismatch"  # counters were put right by what is there
ALARMS = (ROLLED_BACK, NEW_GENERATION, COUNTER_MISMATCH)
