"""How much memory the store uses, and may use, on all of its servers together."""

from __future__ import annotations

from dataclasses import dataclass

from redis.asyncio.connection import AbstractConnection
from redis.exceptions import RedisError, ResponseError

from services.store.connect import Connector, ask
from services.store.link import explain


@dataclass(frozen=True, slots=True)
class Memory:
    """Octets; None: nobody says. A limit of None may also be no limit."""

    used: int | None
    limit: int | None
    fullest: float | None = (
        None  # of its own limit, the server that has used most of it: it is the first to refuse
    )


async def memory_of(connector: Connector) -> Memory:
    """Raises StoreError."""
    used: list[int] = []
    limits: list[int] = []

    async def look(connection: AbstractConnection) -> None:
        told = (await ask(connection, "INFO", "memory")).decode()
        fields = dict(line.split(":", 1) for line in told.split("\r\n") if ":" in line)
        used.append(int(fields["used_memory"]))
        limits.append(int(fields.get("maxmemory", 0)))

    try:
        await connector.on_every_primary(look)
    except ResponseError:  # a managed service may not let us
        return Memory(None, None)
    except (RedisError, OSError, TimeoutError) as error:
        raise explain(error) from error
    shares = [one / limit for one, limit in zip(used, limits, strict=True) if limit]
    return Memory(sum(used), sum(limits) if all(limits) else None, max(shares, default=None))
