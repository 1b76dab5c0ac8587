"""Store the progress of console jobs, so that each console can show the jobs of all (docs/store.md)."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from services.store.catalogue.registry import Registry

log = logging.getLogger(__name__)

KEEP_MS = 24 * 3600 * 1000  # entries expire this long after the last write
END = "end "  # prefix of a request to end a job; its id follows


@dataclass(frozen=True, slots=True)
class Posted:
    """The stored state of a job."""

    id: str
    written_ms: int  # time of the write, by the store's clock
    document: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Posts:
    """The states of all jobs."""

    now_ms: int
    jobs: list[Posted]


class JobBoard:
    """The states of all consoles' jobs. Every method raises StoreUnavailable."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    async def put(self, identifier: str, document: dict[str, Any]) -> None:
        """Store the state of a job. Raises OutcomeUnknown."""
        await self._write(identifier, json.dumps(document, separators=(",", ":")))

    async def ask_end(self, identifier: str) -> None:
        """Request the end of a job, which its console notices within two seconds. Raises OutcomeUnknown."""
        await self._write(END + identifier, "{}")

    async def is_to_end(self, identifier: str) -> bool:
        """Return whether the end of the job was requested."""
        return bool(await self._registry.link.call("HEXISTS", self._registry.keys.jobs, END + identifier))

    async def _write(self, member: str, text: str) -> None:
        await self._registry.link.function("process", [self._registry.keys.jobs], member, text, KEEP_MS)

    async def read(self) -> Posts:
        """Read all states; unreadable ones, of other versions, are omitted."""
        now_ms = await self._registry.link.now_ms()
        found = await self._registry.link.call("HGETALL", self._registry.keys.jobs)
        posted = [
            _parse(found[at], found[at + 1])
            for at in range(0, len(found), 2)
            if not found[at].startswith(END.encode())
        ]
        return Posts(now_ms, [one for one in posted if one is not None])

    async def remove(self, identifiers: Iterable[str]) -> None:
        """Remove the states of jobs, and requests to end them."""
        members = [member for each in identifiers for member in (each, END + each)]
        if members:
            await self._registry.link.call("HDEL", self._registry.keys.jobs, *members)


def _parse(member: bytes, value: bytes) -> Posted | None:
    written, _, text = value.partition(b" ")
    try:
        return Posted(member.decode(), int(written), dict(json.loads(text)))
    except (ValueError, TypeError, RecursionError) as error:
        log.debug("a job's post cannot be read: %r", error, extra={"action": "job_unread"})
        return None
