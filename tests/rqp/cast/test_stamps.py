"""Age of questions by kernel timestamps, whose clock may be stepped (rqp_cast.md 1.1)."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator

import pytest

from services.rqp.cast.ports.datagrams import bound, received
from services.store.model.clock import Stamps

LATE_S = 2.0  # T_WAIT1
WAITED_S = 0.05


@pytest.fixture
def hearing() -> Iterator[socket.socket]:
    with bound("127.0.0.1", 0, shared=False) as sock:
        yield sock


def ask(hearing: socket.socket) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.sendto(b"question", hearing.getsockname())


@pytest.mark.parametrize("step_s", [0, 3600, -3600])
def test_clock_step_does_not_change_the_age_of_questions(
    hearing: socket.socket, monkeypatch: pytest.MonkeyPatch, step_s: int
) -> None:
    """Check that a clock step does not change the age of questions.

    One was stamped before the step and one after it; neither is an hour old, and the first has waited.
    """
    stamps, wall = Stamps(), time.time
    ask(hearing)
    time.sleep(WAITED_S)
    monkeypatch.setattr(time, "time", lambda: wall() + step_s)
    ((_, _, first_s),) = received(hearing, stamps)
    assert WAITED_S <= first_s < LATE_S
    monkeypatch.setattr(time, "time", wall)
    ask(hearing)
    ((_, _, second_s),) = received(hearing, stamps)
    assert second_s < LATE_S
