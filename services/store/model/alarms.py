"""Define the alarms that the store reports to its observer without a request, for an operator to act on."""

from __future__ import annotations

ROLLED_BACK = "store_rolled_back"  # the store lost changes that it had acknowledged
NEW_GENERATION = "new_generation"  # the dataset continues, and may lack the latest changes
DATASET_CHANGED = "dataset_changed"  # the store holds another dataset
COUNTER_MISMATCH = "counter_mismatch"  # counters were corrected from the data
CLOCK_STEPPED = "clock_stepped"  # the store's clock was stepped relative to this machine's
ALARMS = (ROLLED_BACK, NEW_GENERATION, DATASET_CHANGED, COUNTER_MISMATCH, CLOCK_STEPPED)
