"""Connections to the primary that holds a domain: on a single server, under Sentinels, or in a Cluster."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol

from redis.asyncio.connection import AbstractConnection, Connection, SSLConnection, UnixDomainSocketConnection
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import Sentinel
from redis.backoff import NoBackoff
from redis.crc import key_slot
from redis.exceptions import RedisError

from services.store.errors import StoreUnavailable
from services.store.url import TLS_OPTIONS, Address, StoreUrl

CONNECT_TIMEOUT_S = 2.0
ADMIN_TIMEOUT_S = 10.0
REPLY_TIMEOUT_S = 5.0
OPEN_TIMEOUT_S = 2 * CONNECT_TIMEOUT_S  # the server accepts, and then has to answer


class Resolver(Protocol):
    """Finds the primary that holds a key."""

    async def primary(self, key: str) -> Address | None: ...  # None: the socket of the URL

    async def primaries(self) -> list[Address | None]: ...  # all of them: each needs our functions


@dataclass
class FixedResolver:
    address: Address | None

    async def primary(self, key: str) -> Address | None:
        return self.address

    async def primaries(self) -> list[Address | None]:
        return [self.address]


class SentinelResolver:
    """Asks the Sentinels at every connect: after a failover the answer is another."""

    def __init__(self, url: StoreUrl) -> None:
        known = url.options
        own = {k: known["sentinel_" + k] for k in ("username", "password") if "sentinel_" + k in known}
        self._service = url.path
        self._sentinel = Sentinel(  # type: ignore[no-untyped-call]
            [(a.host, a.port) for a in url.addresses],
            sentinel_kwargs={
                **own,
                "socket_timeout": CONNECT_TIMEOUT_S,
                "retry": Retry(NoBackoff(), 0),
                "protocol": 2,
                "ssl": url.tls,
                **_tls_options(url),
            },
        )

    async def primary(self, key: str) -> Address | None:
        """What the Sentinel with the newest configuration says: another may not have heard of the failover yet."""
        try:
            asked = [client.sentinel_master(self._service) for client in self._sentinel.sentinels]
            answers = await asyncio.gather(*asked, return_exceptions=True)
        finally:
            await self._sentinel.aclose()
        states = [answer for answer in answers if isinstance(answer, dict)]
        if not states:
            raise StoreUnavailable(f"no Sentinel knows {self._service!r}: {answers[0]!r}")
        newest = max(states, key=lambda state: int(state["config-epoch"]))
        if not self._sentinel.check_master_state(newest, self._service):
            raise StoreUnavailable(f"the Sentinels see no primary of {self._service!r} that is well")
        return Address(newest["ip"], int(newest["port"]))

    async def primaries(self) -> list[Address | None]:
        return [await self.primary("")]


class ClusterResolver:
    """Asks any node for the slots at every connect."""

    def __init__(self, url: StoreUrl) -> None:
        self._url = url
        self._known: list[Address] = list(url.addresses)

    async def primary(self, key: str) -> Address | None:
        slot = key_slot(key.encode())
        for low, high, place in await self._all_slots():
            if low <= slot <= high:
                return Address(*place)
        raise StoreUnavailable(f"no node of the cluster holds slot {slot} now")

    async def primaries(self) -> list[Address | None]:
        return [Address(*place) for place in dict.fromkeys(place for *_, place in await self._all_slots())]

    async def _all_slots(self) -> list[tuple[int, int, tuple[str, int]]]:
        last: Exception | None = None
        for address in list(self._known):
            try:
                slots = await self._slots(address)
            except (TimeoutError, RedisError, OSError) as error:
                last = error
                continue
            self._known = list(
                {Address(p[0], p[1]): None for *_, p in slots} | dict.fromkeys(self._url.addresses)
            )
            return slots
        raise StoreUnavailable(f"no node of the cluster answers: {last}")

    async def _slots(self, address: Address) -> list[tuple[int, int, tuple[str, int]]]:
        connection = await open_connection(self._url, address, CONNECT_TIMEOUT_S)
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                found = await ask(connection, "CLUSTER", "SLOTS")
        finally:
            await connection.disconnect(nowait=True)
        return [
            (low, high, ((node[0] or b"").decode() or address.host, node[1])) for low, high, node, *_ in found
        ]


class Connector:
    """Makes connections to the primary of a key, whatever kind of store the URL names."""

    def __init__(self, url: str, reply_timeout_s: float = REPLY_TIMEOUT_S) -> None:
        """reply_timeout_s: how long a plain question waits to be connected, and then for its answer."""
        self.url = StoreUrl.parse(url)
        self.reply_timeout_s = reply_timeout_s
        self.resolver: Resolver
        if self.url.mode == "sentinel":
            self.resolver = SentinelResolver(self.url)
        elif self.url.mode == "cluster":
            self.resolver = ClusterResolver(self.url)
        else:
            self.resolver = FixedResolver(self.url.addresses[0] if self.url.addresses else None)

    @property
    def may_fail_over(self) -> bool:
        return self.url.mode in ("sentinel", "cluster")

    async def connect(self, key: str, opens_within_s: float = OPEN_TIMEOUT_S) -> AbstractConnection:
        """An open connection; no retries of its own (a repeat needs its sequence), and no time-outs of its own.

        opens_within_s: how long the server may take until it is. Raises RedisError, OSError or TimeoutError.
        """
        return await open_connection(self.url, await self.resolver.primary(key), opens_within_s)

    async def is_primary(self, connection: AbstractConnection, key: str) -> bool:
        """Whether the server at the other end is still the one that holds the key. Raises as `connect` does."""
        address = await self.resolver.primary(key)
        return address is None or (
            isinstance(connection, Connection)
            and (connection.host, connection.port) == (address.host, address.port)
        )

    async def on_every_primary(self, work: Callable[[AbstractConnection], Awaitable[None]]) -> None:
        """Does this on each, which may take ADMIN_TIMEOUT_S. Raises RedisError, OSError or TimeoutError."""
        for address in await self.resolver.primaries():
            connection = await open_connection(self.url, address)
            try:
                async with asyncio.timeout(ADMIN_TIMEOUT_S):
                    await work(connection)
            finally:
                await connection.disconnect(nowait=True)

    async def ask_every_primary(self, *command: Any) -> list[tuple[Address | None, Any]]:
        """What each of them answers, or the RedisError, OSError or TimeoutError why it does not.

        Raises StoreUnavailable and these where nobody says which ones there are.
        """
        addresses = await self.resolver.primaries()
        asked = (self._ask_one(address, command) for address in addresses)
        return list(zip(addresses, await asyncio.gather(*asked), strict=True))

    async def _ask_one(self, address: Address | None, command: tuple[Any, ...]) -> Any:
        try:
            connection = await open_connection(self.url, address, self.reply_timeout_s)
            try:
                async with asyncio.timeout(self.reply_timeout_s):
                    return await ask(connection, *command)
            finally:
                await connection.disconnect(nowait=True)
        except (RedisError, OSError, TimeoutError) as error:
            return error


async def open_connection(
    url: StoreUrl, address: Address | None, opens_within_s: float = OPEN_TIMEOUT_S
) -> AbstractConnection:
    """Connects to one node (None: to the URL's socket) with the URL's credentials and TLS.

    Whoever asks something says how long he waits, by `asyncio.timeout`: the `wait_for` by which redis-py does, with
    Python 3.11, loses a cancellation that comes at the wrong moment, and whoever was to end goes on.
    """
    options: dict[str, Any] = {
        "db": url.db,
        "protocol": 2,
        "retry": Retry(NoBackoff(), 0),
        "socket_timeout": None,
        "health_check_interval": 0,
        **url.credentials,
    }
    made: AbstractConnection
    if address is None:
        made = UnixDomainSocketConnection(path=url.path, **options)
    else:
        options |= _tls_options(url)
        kind = SSLConnection if url.tls else Connection
        made = kind(
            host=address.host,
            port=address.port,
            socket_connect_timeout=CONNECT_TIMEOUT_S,
            socket_keepalive=True,
            **options,
        )
    try:
        async with asyncio.timeout(opens_within_s):
            await made.connect()  # type: ignore[no-untyped-call]
    except BaseException:  # also when whoever asked is cancelled: nobody else knows of the socket
        await made.disconnect(nowait=True)
        raise
    return made


def _tls_options(url: StoreUrl) -> dict[str, Any]:
    """Chains end at an authority of `ssl_ca_certs`: the root above an intermediate one may be missing."""
    files = {name: value for name, value in url.options.items() if name in TLS_OPTIONS}
    return {"ssl_include_verify_flags": [ssl.VERIFY_X509_PARTIAL_CHAIN], **files} if url.tls else files


async def ask(connection: AbstractConnection, *command: Any) -> Any:
    """One command's reply, octets as they came. Raises what redis-py raises."""
    await connection.send_packed_command(connection.pack_command(*command), check_health=False)
    return await connection.read_response(disable_decoding=True)


async def drop(connection: AbstractConnection) -> None:
    """Closes at once: a peer that is gone would keep what is unsent, and the connection, for a quarter of an hour."""
    writer = connection._writer
    if writer is not None:
        writer.transport.abort()
    await connection.disconnect(nowait=True)
