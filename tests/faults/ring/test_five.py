"""Five nodes on five machines form one ring again after kills and cuts, and lose no push (ring.md 3 to 5).

This is one run; `make faults SEEDS=10` does many. FAULT_SEED repeats a run: the planned faults, their times and every
client's choices are the same, but which request coincides with which fault depends on the machine.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.ring.plan import WAYS
from tests.faults.ring.run import Run
from tests.faults.ring.verdict import verdict
from tests.faults.seeds import first_seed

SECONDS = 15.0  # time under faults, without start, recovery and final pushes
LONGEST_S = 400


@pytest.mark.timeout(LONGEST_S)
async def test_acknowledged_pushes_survive_and_one_ring_forms(tmp_path: Path) -> None:
    seed = first_seed()
    print(f"FAULT_SEED={seed}")
    outcome = await Run(seed, tmp_path, SECONDS).go()
    judged = verdict(outcome)
    if judged.report:  # no assert: pytest would print the whole history
        pytest.fail(judged.report, pytrace=False)
    print(judged.summary)
    kinds = {(fault.target.split()[0], fault.kind) for fault in outcome.faults}
    assert {("node", "kill"), ("store", "kill"), ("cable", "pull")} <= kinds
    pushed = {(push.node, push.queue) for push in outcome.history.pushes}
    assert pushed == {(way.node, way.queue) for way in WAYS}
    assert outcome.history.pulls
