"""Test the end of connections in every state: leases and replies (tmq.md 5.4, 6.1)."""

from __future__ import annotations

import asyncio
import gc

import pytest

from services.tmq.session import TmqSession
from tests.live import until
from tests.tmq.live import LiveEdge
from tests.tmq.states import (
    OTHER,
    RACES,
    STATES,
    THREE,
    Q,
    State,
    by_name,
    dnq_unanswered_in_a_transaction,
    in_a_transaction,
    nothing_leased,
    prepared,
    sees,
)


@pytest.mark.parametrize("state", STATES, ids=by_name)
async def test_reset_aborts_the_connection(edge: LiveEdge, state: State) -> None:
    # 6.1, 5.4: unsettled messages return to the front, and buffered ENQs are dropped
    client, witness = await prepared(edge)
    await state(client)
    client.reset()
    await until(lambda: len(edge.connections()) == 1)
    await until(lambda: sees(witness, Q, 3))
    assert await witness.drain(Q) == THREE
    assert set(await witness.drain(OTHER)) <= {b"x"}
    edge.check_no_fault_of_ours()


@pytest.mark.parametrize("state", RACES, ids=by_name)
async def test_reset_at_any_moment_loses_nothing(edge: LiveEdge, state: State) -> None:
    # 6.1: however much was answered by then, each message is either settled or back in its place
    for turns in range(12):
        client, witness = await prepared(edge)
        await state(client)
        for _ in range(turns):
            await asyncio.sleep(0)
        client.reset()
        await until(lambda: len(edge.connections()) == 1)
        await until(lambda: nothing_leased(edge))
        found = await witness.drain(Q)
        assert found in (THREE, THREE[1:]), turns
        witness.close()
        await until(lambda: not edge.connections())


@pytest.mark.parametrize("state", [in_a_transaction, dnq_unanswered_in_a_transaction], ids=by_name)
async def test_fin_inside_a_transaction_aborts_it(edge: LiveEdge, state: State) -> None:
    # 5.4: a disconnect is an abort, also after an orderly close
    client, witness = await prepared(edge)
    await state(client)
    client.fin()
    await client.rest()
    client.close()
    await until(lambda: sees(witness, Q, 3))
    assert await witness.drain(Q) == THREE
    assert await witness.drain(OTHER) == []


async def test_te_and_fin(edge: LiveEdge) -> None:
    # 5.3, 1.2: TE was sent before the FIN, so it is executed and answered
    client, witness = await prepared(edge)
    await in_a_transaction(client)
    await client.send(b"\6")
    client.fin()
    assert await client.rest() == b"\0"
    assert await witness.drain(Q) == [b"3"]
    assert await witness.drain(OTHER) == [b"never"]


async def test_te_and_reset(edge: LiveEdge) -> None:
    # 5.3: a transaction is atomic, even if its reply is never read
    for turns in range(8):
        client, witness = await prepared(edge)
        await in_a_transaction(client)
        await client.send(b"\6")
        for _ in range(turns):
            await asyncio.sleep(0)
        client.reset()
        await until(lambda: len(edge.connections()) == 1)
        await until(lambda: nothing_leased(edge))
        found = await witness.drain(Q), await witness.drain(OTHER)
        assert found in ((THREE, []), ([b"3"], [b"never"]))
        witness.close()
        await until(lambda: not edge.connections())


async def test_session_is_freed_at_once_in_any_state(edge: LiveEdge) -> None:
    # thousands of connections come and go; their memory must not wait for a full collection
    gc.freeze()  # otherwise each collection scans all loaded modules
    gc.disable()
    try:
        for state in STATES:
            client, witness = await prepared(edge)
            await state(client)
            client.reset()
            await until(lambda: len(edge.connections()) == 1)
            await until(lambda: nothing_leased(edge))
            for queue in (Q, OTHER):
                await witness.drain(queue)
            witness.close()
            await until(lambda: not edge.connections())
            await until(lambda: not any(isinstance(each, TmqSession) for each in gc.get_objects()))
    finally:
        gc.enable()
        gc.unfreeze()
