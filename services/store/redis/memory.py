"""How much memory the store uses, and may use, on all of its servers together."""

from __future__ import annotations

from dataclasses import dataclass

from redis.exceptions import RedisError, ResponseError

from services.store.redis.connect import Connector
from services.store.redis.link import explain


@dataclass(frozen=True, slots=True)
class Memory:
    """Octets; None: nobody says. A limit of None may also be no limit."""

    used: int | None
    limit: int | None
    fullest: float | None = (
        None  # of its own limit, the server that has used most of it: it is the first to refuse
    )
    silent: tuple[str, ...] = ()  # servers that did not answer, and are in no figure


async def memory_of(connector: Connector) -> Memory:
    """Of the servers that answer. Raises StoreError where none does."""
    try:
        answers = await connector.ask_every_primary("INFO", "memory")
    except (RedisError, OSError, TimeoutError) as error:
        raise explain(error) from error
    if any(isinstance(answer, ResponseError) for _, answer in answers):  # a managed service may not let us
        return Memory(None, None)
    told = [_read(answer) for _, answer in answers if isinstance(answer, bytes)]
    if not told:
        raise explain(answers[0][1]) from answers[0][1]
    shares = [used / limit for used, limit in told if limit]
    limits = [limit for _, limit in told]
    return Memory(
        sum(used for used, _ in told),
        sum(limits) if all(limits) else None,
        max(shares, default=None),
        tuple(str(address) for address, answer in answers if not isinstance(answer, bytes)),
    )


def _read(answer: bytes) -> tuple[int, int]:
    """What is used, and what may be: 0 = no limit."""
    fields = dict(line.split(":", 1) for line in answer.decode().split("\r\n") if ":" in line)
    return int(fields["used_memory"]), int(fields.get("maxmemory", 0))
