"""Three stores in a ring of links lose, duplicate and reorder no message despite kills and cuts (pubsub.md 3, 4).

This is one short run; `make faults SEEDS=10` does many long ones. FAULT_SEED repeats a run: the planned faults, their
times and every actor's choices are the same, but which request coincides with which fault depends on the machine.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.seeds import first_seed
from tests.faults.text.run import Run
from tests.faults.text.verdict import verdict

SECONDS = 10.0  # time under faults, without start and recovery
LONGEST_S = 300


@pytest.mark.timeout(LONGEST_S)
async def test_each_message_once_and_in_order_at_every_store(tmp_path: Path) -> None:
    seed = first_seed()
    print(f"FAULT_SEED={seed}")
    outcome = await Run(seed, tmp_path, SECONDS).go()
    judged = verdict(outcome)
    if judged.report:  # no assert: pytest would print the whole history
        pytest.fail(judged.report, pytrace=False)
    print(judged.summary)
    assert outcome.faults
