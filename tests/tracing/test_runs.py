"""Runs with and without traced records are accepted alike; traced records only begin entries."""

from __future__ import annotations

import random
from typing import Any

import pytest

from services.store import INTERNAL_CLIENT, Queue, Source
from services.store.model import records
from services.store.model.operations import Refusals
from services.store.model.trace_context import KEY, Context, fresh
from tests.live import until
from tests.servers import Server
from tests.tracing.stores import TracedStore, traced_store

NOBODY = "http://127.0.0.1:9"  # no collector
RUNS = 10
LARGEST = 300  # octets of a body that a transmission queue's peers take
SPECS: dict[str, dict[str, Any]] = {
    "octets": {"maxBytes": 9_000},
    "messages": {"maxLength": 50},
    "oldest": {"maxBytes": 9_000, "overflow": "dead_letter_oldest"},
    "peers": {"maxBytes": 9_000},
}


def spec_of(bound: str, number: int) -> dict[str, Any]:
    remote = {"protocol": "rqp-mca", "queueId": number, "maxMessageBytes": LARGEST}
    return {**SPECS[bound], **({"remote": remote} if bound == "peers" else {})}


def drawn(chance: random.Random, longest: int) -> list[tuple[bytes, bool]]:
    """Bodies, and the indexes of traced ones."""
    share = chance.choice((0.05, 0.5))
    return [
        (chance.randbytes(chance.choice((1, 20, 250, longest))), chance.random() < share)
        for _ in range(chance.randint(1, 80))
    ]


def run_of(drawn: list[tuple[bytes, bool]], *, traced: bool) -> list[bytes]:
    """All have a context, sampled or not, so their lengths are equal."""
    context = fresh()
    header = {yes: Context(context.trace_id, context.span_id, is_sampled=yes).header for yes in (True, False)}
    return [records.encode(body, {KEY: header[traced and is_traced]}) for body, is_traced in drawn]


async def put(store: TracedStore, queue: Queue, run: list[bytes], *, in_order: bool) -> list[tuple[int, str]]:
    pipe = store.open_domain(queue.domain).pipe
    await pipe.ready()
    outcomes: list[Any] = []
    pipe.messages.publish(Source(INTERNAL_CLIENT), queue, run, "test", outcomes.append, in_order=in_order)
    answer: Refusals = (await until(lambda: outcomes))[0]
    assert isinstance(answer, list), answer
    return [(index, why.reason) for index, why in answer]


@pytest.mark.parametrize("in_order", [False, True])
@pytest.mark.parametrize("bound", SPECS)
async def test_nearly_full_queue_accepts_the_same_messages(
    server: Server, chance: random.Random, bound: str, in_order: bool
) -> None:
    refused = 0
    async with traced_store(server.url, None) as plain, traced_store(server.url, NOBODY) as traced:
        for number in range(RUNS):
            one, other = [
                await plain.queue(f"q{each}", **spec_of(bound, each))
                for each in (2 * number + 1, 2 * number + 2)
            ]
            run = drawn(chance, LARGEST + 1 if bound == "peers" else 4_500)
            refusals = await put(plain, one, run_of(run, traced=False), in_order=in_order)
            assert await put(traced, other, run_of(run, traced=True), in_order=in_order) == refusals
            refused += len(refusals)
            left = [
                (await plain.listing.stats(queue))[what]
                for queue in (one, other)
                for what in ("ready", "bytes")
            ]
            assert left[:2] == left[2:]
    assert bound == "oldest" or refused  # or nothing was nearly full
