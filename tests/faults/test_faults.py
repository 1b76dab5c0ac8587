"""Nothing that was acknowledged is lost or doubled, whatever is killed when (tmq.md 5, 6, 7.2).

A short run here; `make faults SEEDS=10` makes many long ones. FAULT_SEED repeats one: the same faults are planned for
the same moments and every actor makes the same choices, but what meets which fault is up to the machine.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.run import Run
from tests.faults.seeds import first_seed
from tests.faults.verdict import judge, report, summary

SECONDS, KILLS = 20.0, 8  # of faults; the start, and the drain, come on top
LONGEST_S = 600


@pytest.mark.timeout(LONGEST_S)
async def test_acknowledged_messages_survive_every_kill(tmp_path: Path) -> None:
    seed = first_seed()
    print(f"FAULT_SEED={seed}")
    outcome = await Run(seed, tmp_path, SECONDS, KILLS).go()
    reading, violations = judge(outcome)
    if violations:  # not an assert: pytest would print the whole history, gigabytes of it
        pytest.fail(report(outcome, reading, violations), pytrace=False)
    print(summary(outcome, reading))
    assert outcome.kills >= KILLS
