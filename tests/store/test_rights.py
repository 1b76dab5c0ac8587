"""The edges' user needs no more rights than services/store/rights.py says (architecture: security)."""

from __future__ import annotations

import pytest
from redis.exceptions import ResponseError

from services.store import DeadLetters, Part, QueueSpec, Source, Store, records
from services.store.asking import Asker
from services.store.rights import acl_rules
from tests.servers import Server

PASSWORD = "not secret"


async def test_an_edge_works_with_the_rights_of_its_user(server: Server) -> None:
    administrator = Store(server.url, "admin")
    await administrator.initialise()
    await administrator.close()
    server.call("ACL", "SETUSER", "edge", *acl_rules(), f">{PASSWORD}")
    try:
        store = Store(f"redis://edge:{PASSWORD.replace(' ', '%20')}@127.0.0.1:{server.port}", "test")
        await work_with(store)
    finally:
        server.call("ACL", "DELUSER", "edge")


async def work_with(store: Store) -> None:
    """Every verb once."""
    spec = QueueSpec(max_deliveries=1)
    queue, _ = await store.declare("rights", spec, "test")
    domain = store.domain()
    await domain.pipe.ready()
    ask = Asker(domain.pipe)
    assert await ask.publish(queue, [records.encode(b"%d" % n) for n in range(40)], "test") == []
    first = await ask.take(queue, 3)
    await ask.settle(first)
    back = await ask.take(queue, 2)
    await ask.release(back)
    both = await ask.take(queue, 1)
    await ask.commit("rights-1", [Part(queue, both, [records.encode(b"in its place")], "test")])
    domain.pipe.release(Source(), await ask.take(queue, 1), failed=True)
    assert len(await domain.peek(queue, 5)) > 0
    letters = DeadLetters(domain, queue)
    dead = [letter.id async for letter in letters.matching()]
    assert (await letters.redrive(dead)).moved == 1
    assert await letters.purge(dead) == 0
    fence = await domain.reserve(queue, "me", 60_000)
    assert fence
    assert await domain.release_reservation(queue, "me", fence)
    assert await domain.tidy(queue) == {"len": 0, "bytes": 0, "leased": 0}
    await domain.sweep()
    assert (await store.stats(queue))["dead"] == 1
    assert [q.name async for q in store.queues()] == ["rights"]
    await store.delete(await store.find("rights"))
    await store.close()


@pytest.mark.parametrize(
    "command",
    [("CONFIG", "GET", "*"), ("FLUSHALL",), ("KEYS", "*"), ("EVAL", "return 1", "0"), ("GET", "other")],
)
async def test_the_edges_user_may_do_nothing_else(server: Server, command: tuple[str, ...]) -> None:
    server.call("ACL", "SETUSER", "edge", *acl_rules(), f">{PASSWORD}")
    try:
        with server.client() as client:
            client.call("AUTH", "edge", PASSWORD)
            with pytest.raises(ResponseError, match="permission"):
                client.call(*command)
    finally:
        server.call("ACL", "DELUSER", "edge")
