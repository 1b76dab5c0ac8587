"""Two systems joined by RQP/MCA and RQP/cast keep the guarantees of their pages despite kills and cuts.

This is one run; `make faults SEEDS=10` does many. FAULT_SEED repeats a run: the planned faults, their times and every
producer's choices are the same, but which message coincides with which fault depends on the machine.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.rqp.plan import WAYS
from tests.faults.rqp.run import Run
from tests.faults.rqp.verdict import verdict
from tests.faults.seeds import first_seed

SECONDS = 10.0  # time under faults, without start, recovery and final messages
LONGEST_S = 300


@pytest.mark.timeout(LONGEST_S)
async def test_certain_messages_arrive_and_the_others_are_accounted_for(tmp_path: Path) -> None:
    seed = first_seed()
    print(f"FAULT_SEED={seed}")
    outcome = await Run(seed, tmp_path, SECONDS).go()
    judged = verdict(outcome)
    if judged.report:  # no assert: pytest would print the whole history
        pytest.fail(judged.report, pytrace=False)
    print(judged.summary)
    assert outcome.faults
    assert all(outcome.history.books[way].arrivals for way in WAYS)
