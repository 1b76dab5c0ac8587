"""Two systems joined by RQP/MCA and RQP/cast, both ways: what docs/rqp.md promises, whatever is killed or cut.

One run here; `make faults SEEDS=10` makes many. FAULT_SEED repeats one: the same faults are planned for the same
moments and every producer makes the same choices, but what meets which fault is up to the machine.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.rqp.plan import WAYS
from tests.faults.rqp.run import Run
from tests.faults.rqp.verdict import verdict
from tests.faults.seeds import first_seed

SECONDS = 10.0  # of faults; the start, healing, and peace come on top
LONGEST_S = 300


@pytest.mark.timeout(LONGEST_S)
async def test_certain_messages_arrive_and_the_others_are_accounted_for(tmp_path: Path) -> None:
    seed = first_seed()
    print(f"FAULT_SEED={seed}")
    outcome = await Run(seed, tmp_path, SECONDS).go()
    judged = verdict(outcome)
    if judged.report:  # not an assert: pytest would print the whole history
        pytest.fail(judged.report, pytrace=False)
    print(judged.summary)
    assert outcome.faults
    assert all(outcome.history.books[way].arrivals for way in WAYS)
