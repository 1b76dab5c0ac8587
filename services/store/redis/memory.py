"""The memory use and limit of the store's servers."""

from __future__ import annotations

from dataclasses import dataclass

from redis.exceptions import RedisError, ResponseError

from services.store.redis.connect import Connector, parse_info
from services.store.redis.link import explain

# share of a server's maxmemory above which it refuses publishes: GUARD of lua/schema.lua
PUBLISH_LIMIT = 0.75


@dataclass(frozen=True, slots=True)
class Memory:
    """Memory of all primaries together, in octets. None: unknown, or no limit."""

    used: int | None
    limit: int | None
    fullest: float | None = None  # used share of the fullest server, which is the first to refuse
    silent: tuple[str, ...] = ()  # servers that did not answer, and are left out


async def memory_of(connector: Connector) -> Memory:
    """Return the memory of the primaries that answer. Raises StoreError if none does."""
    try:
        answers = await connector.ask_every_primary("INFO", "memory")
    except (RedisError, OSError, TimeoutError) as error:
        raise explain(error) from error
    if any(isinstance(answer, ResponseError) for _, answer in answers):  # a managed service may not let us
        return Memory(None, None)
    servers = [parse_info(answer) for _, answer in answers if isinstance(answer, bytes)]
    if not servers:
        raise explain(answers[0][1]) from answers[0][1]
    used = [int(fields["used_memory"]) for fields in servers]
    limits = [int(fields.get("maxmemory", 0)) for fields in servers]  # 0: no limit
    return Memory(
        sum(used),
        sum(limits) if all(limits) else None,
        max((octets / limit for octets, limit in zip(used, limits, strict=True) if limit), default=None),
        tuple(str(address) for address, answer in answers if not isinstance(answer, bytes)),
    )
