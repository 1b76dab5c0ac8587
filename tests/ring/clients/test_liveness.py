"""Liveness of sessions: in any order of events each request is answered once (ring.md 5.2)."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.chance import SESSION
from tests.ring.clients.simulation import Simulation


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32), st.integers(5, 80))
def test_no_request_waits_once_the_store_has_answered_all(seed: int, steps: int) -> None:
    world = Simulation(random.Random(seed))
    for _ in range(steps):
        world.step()
    world.settle_down()
    if world.closed:
        return
    assert not world.drained, "all was answered, but the drained connection is still open"
    assert not world.holds & SESSION, "reading is paused, and nothing will resume it"
    assert echoes(world.written) == world.asked, "some request was not answered in its turn"


def echoes(written: bytes) -> list[bytes]:
    """Return the two fields of each reply, in order."""
    found, at = [], 0
    while at < len(written):
        found.append(written[at + 4 : at + 514])
        at += 518 + int.from_bytes(written[at + 514 : at + 518], "big")
    assert at == len(written)
    return found
