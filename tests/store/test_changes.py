"""Changes of queues: what was done is never told as not done, and what somebody else changed is seen."""

from __future__ import annotations

import pytest

from services.store.errors import OutcomeUnknown
from services.store.queues import Listed
from tests.servers import Server
from tests.store.desk import Desk


async def test_what_was_let_go_is_never_told_as_kept(own_server: Server) -> None:
    async with Desk(own_server) as desk:
        queue = await desk.queue()
        own_server.call("ACL", "SETUSER", "default", "-publish")  # it tells nobody, which is what comes last
        with pytest.raises(OutcomeUnknown):
            await desk.store.release(Listed(queue.name, queue.qid, "test"))
        assert (await desk.store.find(queue.name)).owner == "released test"
