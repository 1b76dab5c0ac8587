"""Three stores in a ring of links: nothing is lost, doubled or reordered, whatever is killed or cut (pubsub.md 3, 4).

A short run here; `make faults SEEDS=10` makes many long ones. FAULT_SEED repeats one: the same faults are planned for
the same moments and every actor makes the same choices, but what meets which fault is up to the machine.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.seeds import first_seed
from tests.faults.text.run import Run
from tests.faults.text.verdict import verdict

SECONDS = 10.0  # of faults; the start, and healing, come on top
LONGEST_S = 300


@pytest.mark.timeout(LONGEST_S)
async def test_each_message_once_and_in_order_at_every_store(tmp_path: Path) -> None:
    seed = first_seed()
    print(f"FAULT_SEED={seed}")
    outcome = await Run(seed, tmp_path, SECONDS).go()
    judged = verdict(outcome)
    if judged.report:  # not an assert: pytest would print the whole history
        pytest.fail(judged.report, pytrace=False)
    print(judged.summary)
    assert outcome.faults
