"""Alarms: what the store tells its observer that no request asked for, and that somebody should look at."""

from __future__ import annotations

ROLLED_BACK = "store_rolled_back"  # it knows less than it had acknowledged
NEW_GENERATION = "new_generation"  # its data goes on, and may lack the last of what there was
DATASET_CHANGED = "dataset_changed"  # it holds other data: what there was is gone
COUNTER_MISMATCH = "counter_mismatch"  # counters were put right by what is there
CLOCK_STEPPED = "clock_stepped"  # its clock was stepped against ours
ALARMS = (ROLLED_BACK, NEW_GENERATION, DATASET_CHANGED, COUNTER_MISMATCH, CLOCK_STEPPED)
