"""Steps that tests of both RQP/cast agents share."""

from __future__ import annotations

import pytest

from protos.rqp_cast import AcceptSenderMsg, Quality, Result
from services.store import Queue
from tests.rqp.cast.hands import HandSender
from tests.rqp.cast.net import THERE
from tests.rqp.live import LiveEdge

QUALITIES = (Quality.HIGH_QUALITY, Quality.LOW_QUALITY)
LARGE = bytes(16 << 20)[: (16 << 20) - 100]  # more than all the kernel's buffers hold


class Closed:
    """A port that was open and is closed."""

    def __init__(self, port: int) -> None:
        self._port = port

    def getsockname(self) -> tuple[str, int]:
        return THERE, self._port


async def ends(hands: HandSender, quality: Quality, result: Result) -> None:
    """Check the answer to a certain message; an uncertain one is never answered (5.6)."""
    if quality is Quality.HIGH_QUALITY:
        assert (await hands.end()).result is result
    else:
        with pytest.raises(BlockingIOError):
            hands.endtransmission.accept()


async def chosen(hands: HandSender, quality: Quality = Quality.HIGH_QUALITY) -> AcceptSenderMsg:
    offer = await hands.asked()
    await hands.approve(offer, 0 if quality is Quality.LOW_QUALITY else 99, quality)
    return offer


async def letters(edge: LiveEdge, queue: Queue) -> list[tuple[str, str, bytes]]:
    """Return (reason, error, body) of each dead letter."""
    return [(letter.reason, letter.error, letter.body) for letter in await edge.dead(queue)]
