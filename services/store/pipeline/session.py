"""The session of one process in one domain: its name, the sequence of its calls, and the generation they belong to.

The store remembers the last answer of a session, so that a call may be repeated; a session that is silent for too long
is fenced, and what it held goes back (docs/store.md, Sessions and leases).
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
    """`epoch` is 'dataset.generation' as last seen, '' before the first time."""

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
        self._keys = keys
        self._edge = edge
        self._may_fail_over = may_fail_over
        self._observe = observe
        self._rolled_back = False
        self._replication = ""  # the primary's replication id, where another may take its place
        self._clock = clock

    def encode(self, call: Call, deadline_ms: float) -> None:
        """Makes the call's command: under a number of its own, or its old one when it is repeated."""
        if not call.sequence:
            self.sequence += 1
        deadline = self._clock.deadline_ms(deadline_ms)
        call.encode(self.epoch, self.name, call.sequence or self.sequence, deadline)

    def forget_last(self) -> None:
        """The store does not remember the last call: the next one takes its number."""
        self.sequence -= 1

    def lost(self) -> None:
        """Everything leased under it is lost; `attach` begins a new one."""
        log.warning("session lost", extra={"action": "session_lost", "session": self.name})
        self.is_open = False

    def rolled_back(self, sequence: int, detail: str) -> None:
        """The store knows less of this session than it had acknowledged: its data goes on in a new generation."""
        log.error(
            "the store lost what it had acknowledged",
            extra={
                "action": "store_rolled_back",
                "session": self.name,
                "detail": detail,
                "sequence": sequence,
            },
        )
        self._observe(ROLLED_BACK, 1)
        self._rolled_back = True
        self.lost()

    # with the store

    async def attach(self, connection: AbstractConnection, must_be_the_same: bool) -> None:
        """Opens it, or shows that it still lives. must_be_the_same: a call of it is to be repeated."""
        if must_be_the_same:
            return
        if not self.is_open:
            self.name = process_name(self._edge)
            self.sequence = 0
            await self._say(connection, "open")
            self.is_open = True
            return
        try:
            await self._say(connection, "beat")
        except ResponseError as error:
            if str(error).startswith("SESSION"):
                self.lost()
            raise

    async def close(self, connection: AbstractConnection) -> None:
        await self._say(connection, "close")
        self.is_open = False

    async def _say(self, connection: AbstractConnection, mode: str) -> None:
        keys = [self._keys.epoch, self._keys.sessions, self._keys.lane(self.name)]
        keys += [self._keys.dying, self._keys.lots(self.name)]
        asked = now()
        told = await ask(connection, "FCALL", "ps1_session", len(keys), *keys, self.epoch, self.name, mode)
        self._clock.heard(int(told), asked)

    async def measure_clock(self, connection: AbstractConnection) -> None:
        """Asks for the store's time: the clock was not what it was believed to be."""
        asked = now()
        seconds, micros = await ask(connection, "TIME")
        self._clock.heard(int(seconds) * 1000 + int(micros) // 1000, asked)

    async def find_epoch(self, connection: AbstractConnection) -> str:
        """The epoch to go on with.

        Data that lost something, or that a new primary took over and may have lost something, goes on in a new
        generation, so that no entry id is given out twice. Raises NotInitialised, DatasetLost, StoreUnavailable.
        """
        found = await ask(connection, "GET", self._keys.epoch)
        if found is None:
            raise DatasetLost() if self.epoch else NotInitialised()
        epoch: str = found.decode()
        replication = await self._look_at_replication(connection)
        moved = bool(self._replication and replication != self._replication)
        if (
            moved or self._rolled_back
        ) and epoch == self.epoch:  # else somebody else was faster, or it is other data
            epoch = await self._begin_generation(connection, epoch)
        self._replication, self._rolled_back = replication, False
        return epoch

    async def _look_at_replication(self, connection: AbstractConnection) -> str:
        """The id of the data's replication history; it changes with every failover."""
        if not self._may_fail_over:
            return ""
        info: str = (await ask(connection, "INFO", "replication")).decode()
        if "role:slave" in info:
            raise StoreUnavailable("the server is a replica, and none has taken over yet")
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
        log.error("a new generation begins", extra={"action": "new_generation", "old": epoch, "new": newer})
        self._observe(NEW_GENERATION, 1)
        return newer
