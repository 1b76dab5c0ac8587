"""Connections to the primary that holds a domain: on a single server, under Sentinels, or in a Cluster."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

from redis.asyncio.connection import AbstractConnection, Connection, SSLConnection, UnixDomainSocketConnection
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import Sentinel
from redis.backoff import NoBackoff
from redis.crc import key_slot
from redis.exceptions import ConnectionError, NoPermissionError, RedisError

from services.store.model.errors import StoreUnavailable
from services.store.redis.disk import Disk
from services.store.redis.tls_files import file_trouble
from services.store.redis.url import TLS_OPTIONS, Address, StoreUrl

T = TypeVar("T")

CONNECT_TIMEOUT_S = 2.0
ADMIN_TIMEOUT_S = 10.0
REPLY_TIMEOUT_S = 5.0
OPEN_TIMEOUT_S = 2 * CONNECT_TIMEOUT_S  # the server accepts, and then has to answer


class Resolver(Protocol):
    """Finds the primary that holds a key."""

    async def primary(self, key: str) -> Address | None: ...  # None: the socket of the URL

    async def primaries(self) -> list[Address | None]: ...  # all of them: each needs our functions

    async def servers(self) -> list[Address | None]: ...  # with replicas, as each may take over


@dataclass
class FixedResolver:
    address: Address | None

    async def primary(self, key: str) -> Address | None:
        return self.address

    async def primaries(self) -> list[Address | None]:
        return [self.address]

    async def servers(self) -> list[Address | None]:
        return [self.address]


class SentinelResolver:
    """Asks the Sentinels at every connect: after a failover the answer is another."""

    def __init__(self, url: StoreUrl) -> None:
        self._url = url
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
        answers = await self._ask_all("sentinel_master")
        states = [answer for answer in answers if isinstance(answer, dict)]
        if not states:
            trouble = file_trouble(self._url) or repr(answers[0])
            raise StoreUnavailable(f"no Sentinel knows {self._service!r}: {trouble}")
        newest = max(states, key=lambda state: int(state["config-epoch"]))
        if not self._sentinel.check_master_state(newest, self._service):
            raise StoreUnavailable(f"the Sentinels see no primary of {self._service!r} that is well")
        return Address(newest["ip"], int(newest["port"]))

    async def primaries(self) -> list[Address | None]:
        return [await self.primary("")]

    async def servers(self) -> list[Address | None]:
        """The primary, and every replica that any Sentinel names, also one that is away."""
        answers = await self._ask_all("sentinel_slaves")
        states = [state for answer in answers if isinstance(answer, list) for state in answer]
        replicas = [Address(state["ip"], int(state["port"])) for state in states]
        return list(dict.fromkeys([await self.primary(""), *replicas]))

    async def _ask_all(self, question: str) -> list[Any]:
        """What each Sentinel answers, or its fault."""
        try:
            asked = [getattr(client, question)(self._service) for client in self._sentinel.sentinels]
            return await asyncio.gather(*asked, return_exceptions=True)
        finally:
            await self._sentinel.aclose()


Slots = tuple[int, int, list[Address]]  # first, last, and who has them: the primary, then its replicas
UNKNOWN_HOSTS = ("", "?")


class ClusterResolver:
    """Asks any node for the slots at every connect."""

    def __init__(self, url: StoreUrl) -> None:
        self._url = url
        self._known: list[Address] = list(url.addresses)

    async def primary(self, key: str) -> Address | None:
        slot = key_slot(key.encode())
        for low, high, nodes in await self._all_slots():
            if low <= slot <= high:
                return nodes[0]
        raise StoreUnavailable(f"no node of the cluster holds slot {slot} now")

    async def primaries(self) -> list[Address | None]:
        return list(dict.fromkeys(nodes[0] for *_, nodes in await self._all_slots()))

    async def servers(self) -> list[Address | None]:
        """Also those that are away, as far as this user may ask."""
        try:
            found = await self._ask_any(self._shards)
        except NoPermissionError:
            found = [node for *_, nodes in await self._all_slots() for node in nodes]
        return list(dict.fromkeys(found))

    async def _all_slots(self) -> list[Slots]:
        slots = await self._ask_any(self._slots)
        named = (node for *_, nodes in slots for node in nodes)
        self._known = list(dict.fromkeys((*named, *self._url.addresses)))
        return slots

    async def _ask_any(self, question: Callable[[Address], Awaitable[T]]) -> T:
        """The answer of the first node that gives one. Raises NoPermissionError, StoreUnavailable."""
        last: Exception | None = None
        for address in list(self._known):
            try:
                return await question(address)
            except NoPermissionError:
                raise
            except (TimeoutError, RedisError, OSError) as error:
                last = error
        raise StoreUnavailable(f"no node of the cluster answers: {last}")

    async def _ask(self, address: Address, *command: str) -> Any:
        connection = await open_connection(self._url, address, CONNECT_TIMEOUT_S)
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                return await ask(connection, *command)
        finally:
            await connection.disconnect(nowait=True)

    async def _shards(self, address: Address) -> list[Address]:
        """Every node, also one that is away: CLUSTER SLOTS leaves that out."""
        port = b"tls-port" if self._url.tls else b"port"
        shards = [_pairs(shard) for shard in await self._ask(address, "CLUSTER", "SHARDS")]
        nodes = [_pairs(node) for shard in shards for node in shard[b"nodes"]]
        return [
            _node([node[b"endpoint"], node[port], b"", [b"ip", node[b"ip"]]], address)
            for node in nodes
            if port in node
        ]

    async def _slots(self, address: Address) -> list[Slots]:
        found = await self._ask(address, "CLUSTER", "SLOTS")
        return [
            (low, high, [_node(node, address) for node in nodes if node[1]]) for low, high, *nodes in found
        ]


def _pairs(words: list[Any]) -> dict[bytes, Any]:
    """A map, as it comes in RESP 2: names and values in turn."""
    return dict(zip(words[::2], words[1::2], strict=False))


def _node(told: list[Any], asked: Address) -> Address:
    """A node of CLUSTER SLOTS: [host, port, id, [metadata's names and values]].

    The host is null where the one that was asked counts (`cluster-preferred-endpoint-type unknown-endpoint`), '' where
    the node does not know its own address yet, and '?' where it is to be known by a name and has none.
    """
    host = (told[0] or b"").decode()
    if told[0] is not None and host in UNKNOWN_HOSTS:
        host = _pairs(told[3] if len(told) > 3 else []).get(b"ip", b"").decode()
    return Address(asked.host if host in UNKNOWN_HOSTS else host, told[1])


class Connector:
    """Makes connections to the primary of a key, whatever kind of store the URL names."""

    def __init__(self, url: str, reply_timeout_s: float = REPLY_TIMEOUT_S) -> None:
        """reply_timeout_s: how long a plain question waits to be connected, and then for its answer."""
        self.url = StoreUrl.parse(url)
        self.reply_timeout_s = reply_timeout_s
        self.disk = (
            Disk(Path(self.url.path).parent) if self.url.mode == "unix" else None
        )  # a server on this machine
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
        return await self.ask_each(await self.resolver.primaries(), *command)

    async def ask_each(
        self, addresses: list[Address | None], *command: Any
    ) -> list[tuple[Address | None, Any]]:
        """The same of these."""
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
    except (RedisError, OSError) as error:
        await made.disconnect(nowait=True)
        if url.tls and (trouble := file_trouble(url)):
            raise ConnectionError(trouble) from error
        raise
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
    writer = connection._writer  # noqa: SLF001 - redis-py offers no writer
    if writer is not None:
        writer.transport.abort()
    await connection.disconnect(nowait=True)
