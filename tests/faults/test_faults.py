"""Acknowledged messages are neither lost nor duplicated by kills of any process at any time (tmq.md 5, 6, 7.2).

This is one short run; `make faults SEEDS=10` does many long ones. FAULT_SEED repeats a run: the planned faults, their
times and every actor's choices are the same, but which request coincides with which fault depends on the machine.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.run import Run
from tests.faults.seeds import first_seed
from tests.faults.verdict import judge, report, summary

SECONDS, KILLS = 20.0, 8  # time under faults, without start and drain
LONGEST_S = 600


@pytest.mark.timeout(LONGEST_S)
async def test_acknowledged_messages_survive_every_kill(tmp_path: Path) -> None:
    seed = first_seed()
    print(f"FAULT_SEED={seed}")
    outcome = await Run(seed, tmp_path, SECONDS, KILLS).go()
    reading, violations = judge(outcome)
    if violations:  # no assert: pytest would print the whole history, which takes gigabytes
        pytest.fail(report(outcome, reading, violations), pytrace=False)
    print(summary(outcome, reading))
    assert outcome.kills >= KILLS
