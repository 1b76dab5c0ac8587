"""Test that no order of events blocks a session (tmq.md 1.2, 7.3)."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from protos import tmq
from tests.chance import SESSION
from tests.tmq.simulation import NAMES, Simulation


@settings(max_examples=300)
@given(st.integers(0, 2**32), st.integers(5, 80))
def test_session_never_deadlocks(seed: int, steps: int) -> None:
    world = Simulation(random.Random(seed))
    for _ in range(steps):
        world.step()
    world.settle_down()
    if world.closed:
        return
    assert not world.drained, "all requests were answered, but the drained connection is still open"
    assert not world.holds & SESSION, "reading is paused, and no event will resume it"
    answered = len(world.written)
    world.session.received(tmq.encode_open(NAMES[0]), world.now)
    world.settle_down()
    assert len(world.written) == answered + 64, "the next request is not answered"
