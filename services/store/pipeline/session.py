"""The session of one process in one domain: its id, the sequence numbers of its calls, and the store's epoch.

The store keeps the last reply of a session, so that a call can be repeated. A session without heartbeats is fenced,
and its messages return to their queues (docs/store.md, Sessions and leases).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from redis.asyncio.connection import AbstractConnection
from redis.exceptions import ResponseError

from services.store.model.alarms import NEW_GENERATION, ROLLED_BACK
from services.store.model.clock import Clock, now
from services.store.model.errors import DatasetLost, NotInitialised, StoreUnavailable
from services.store.model.keys import DomainKeys
from services.store.pipeline.call import Call
from services.store.redis.connect import ask
from services.store.redis.process_names import process_name

log = logging.getLogger(__name__)


class Session:
    """A session. `epoch` is 'dataset.generation' as last seen, '' before the store was reached."""

    def __init__(
        self,
        keys: DomainKeys,
        edge: str,
        may_fail_over: bool,
        observe: Callable[[str, int], None],
        clock: Clock,
    ) -> None:
        self.name = process_name(edge)
        self.epoch = ""
        self.is_open = False
        self.sequence = 0  # of the last call
        self._lost_data = False  # the store has lost calls of this session
        self._keys = keys
        self._edge = edge
        self._may_fail_over = may_fail_over
        self._observe = observe
        self._replication = ""  # the primary's replication id, where failovers are possible
        self._clock = clock

    def encode(self, call: Call, deadline_ms: float) -> None:
        """Encode the call's command with a new sequence number, or with its old one for a repeat."""
        if not call.sequence:
            self.sequence += 1
        deadline = self._clock.deadline_ms(deadline_ms)
        call.encode(self.epoch, self.name, call.sequence or self.sequence, deadline)

    def forget_last(self) -> None:
        """Reuse the last call's number: the store has no record of it."""
        self.sequence -= 1

    def lost(self) -> None:
        """End the session, and with it all leases; `attach` opens a new one."""
        fields = {"action": "session_lost", "session": self.name}
        log.warning("session lost; its unsettled messages will be redelivered", extra=fields)
        self.is_open = False

    def rolled_back(self, sequence: int, detail: str) -> None:
        """End the session: the store has lost acknowledged calls of it. A new generation must begin."""
        fields = {"action": "store_rolled_back", "session": self.name, "detail": detail, "sequence": sequence}
        log.error("data loss: the store has lost acknowledged operations", extra=fields)
        self._observe(ROLLED_BACK, 1)
        self._lost_data = True
        self.lost()

    async def attach(self, connection: AbstractConnection, must_be_the_same: bool) -> None:
        """Open a session, or check that it is alive. must_be_the_same: keep it unchecked for a call to repeat."""
        if must_be_the_same:
            return
        if not self.is_open:
            self.name = process_name(self._edge)
            self.sequence = 0
            await self._call(connection, "open")
            self.is_open = True
            return
        try:
            await self._call(connection, "beat")
        except ResponseError as error:
            if str(error).startswith("SESSION"):
                self.lost()
            raise

    async def close(self, connection: AbstractConnection) -> None:
        """Close the session in the store, which returns its messages at once."""
        await self._call(connection, "close")
        self.is_open = False

    async def _call(self, connection: AbstractConnection, mode: str) -> None:
        keys = [self._keys.epoch, self._keys.sessions, self._keys.lane(self.name)]
        keys += [self._keys.dying, self._keys.lots(self.name)]
        asked = now()
        now_ms = await ask(connection, "FCALL", "ps1_session", len(keys), *keys, self.epoch, self.name, mode)
        self._clock.heard(int(now_ms), asked)

    async def measure_clock(self, connection: AbstractConnection) -> None:
        """Read the store's clock again, after it was stepped."""
        asked = now()
        seconds, micros = await ask(connection, "TIME")
        self._clock.heard(int(seconds) * 1000 + int(micros) // 1000, asked)

    async def find_epoch(self, connection: AbstractConnection) -> str:
        """Return the epoch to use.

        Data that lost operations, or may have lost some in a failover, gets a new generation, so that no entry id is
        reused. Raises NotInitialised, DatasetLost, StoreUnavailable.
        """
        found = await ask(connection, "GET", self._keys.epoch)
        if found is None:
            raise DatasetLost() if self.epoch else NotInitialised()
        epoch: str = found.decode()
        replication = await self._replication_id(connection)
        failed_over = bool(self._replication and replication != self._replication)
        # another epoch: a new generation has begun already, or it is another dataset
        if (failed_over or self._lost_data) and epoch == self.epoch:
            epoch = await self._begin_generation(connection, epoch)
        self._replication, self._lost_data = replication, False
        return epoch

    async def _replication_id(self, connection: AbstractConnection) -> str:
        """Return the id of the data's replication history, which changes with every failover."""
        if not self._may_fail_over:
            return ""
        info: str = (await ask(connection, "INFO", "replication")).decode()
        if "role:slave" in info:
            raise StoreUnavailable("the server is a replica, and no primary has taken over yet")
        return info.partition("master_replid:")[2].partition("\r\n")[0]

    async def _begin_generation(self, connection: AbstractConnection, epoch: str) -> str:
        dataset, _, generation = epoch.partition(".")
        newer = f"{dataset}.{int(generation) + 1}"
        try:
            await ask(connection, "FCALL", "ps1_set_epoch", 1, self._keys.epoch, epoch, newer)
        except ResponseError as error:
            if not str(error).startswith("EPOCH"):
                raise
            found: Any = await ask(connection, "GET", self._keys.epoch)
            return str(found.decode())
        fields = {"action": "new_generation", "old": epoch, "new": newer}
        log.error(
            "new generation after a failover or data loss; the latest operations may be lost",
            extra=fields,
        )
        self._observe(NEW_GENERATION, 1)
        return newer
