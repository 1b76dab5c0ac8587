"""Connect to the primary that holds a key: a single server, under Sentinels, or in a Cluster."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

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
OPEN_TIMEOUT_S = 2 * CONNECT_TIMEOUT_S  # to connect, and for the server's first answer


class Resolver:
    """The servers of a store: of a single one here. The address None is the URL's Unix socket."""

    def __init__(self, url: StoreUrl) -> None:
        self._url = url

    async def primary(self, key: str) -> Address | None:
        """Return the primary that holds the key. Raises StoreUnavailable."""
        return self._url.addresses[0] if self._url.addresses else None

    async def primaries(self) -> list[Address | None]:
        """Return all primaries. Raises StoreUnavailable."""
        return [await self.primary("")]

    async def servers(self) -> list[Address | None]:
        """Return all primaries and replicas, also those that are down. Raises StoreUnavailable."""
        return await self.primaries()


class SentinelResolver(Resolver):
    """A resolver that asks the Sentinels at every connect, as failovers change the answer."""

    def __init__(self, url: StoreUrl) -> None:
        super().__init__(url)
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
        """Return the primary by the Sentinel with the newest configuration; others may lag after a failover."""
        answers = await self._ask_all("sentinel_master")
        states = [answer for answer in answers if isinstance(answer, dict)]
        if not states:
            trouble = file_trouble(self._url) or repr(answers[0])
            raise StoreUnavailable(f"no Sentinel knows the service {self._service!r}: {trouble}")
        newest = max(states, key=lambda state: int(state["config-epoch"]))
        if not self._sentinel.check_master_state(newest, self._service):
            raise StoreUnavailable(f"the Sentinels see no healthy primary of the service {self._service!r}")
        return Address(newest["ip"], int(newest["port"]))

    async def servers(self) -> list[Address | None]:
        """Return the primary and every replica that any Sentinel names, also those that are down."""
        answers = await self._ask_all("sentinel_slaves")
        states = [state for answer in answers if isinstance(answer, list) for state in answer]
        replicas = [Address(state["ip"], int(state["port"])) for state in states]
        return list(dict.fromkeys([await self.primary(""), *replicas]))

    async def _ask_all(self, question: str) -> list[Any]:
        """Return each Sentinel's answer or exception."""
        try:
            asked = [getattr(client, question)(self._service) for client in self._sentinel.sentinels]
            return await asyncio.gather(*asked, return_exceptions=True)
        finally:
            await self._sentinel.aclose()


Slots = tuple[int, int, list[Address]]  # first and last slot; the primary, then its replicas
UNKNOWN_HOSTS = ("", "?")


class ClusterResolver(Resolver):
    """A resolver that asks any node of the Cluster for the slots at every connect."""

    def __init__(self, url: StoreUrl) -> None:
        super().__init__(url)
        self._known: list[Address] = list(url.addresses)

    async def primary(self, key: str) -> Address | None:
        """Return the primary of the key's slot."""
        slot = key_slot(key.encode())
        for low, high, nodes in await self._all_slots():
            if low <= slot <= high:
                return nodes[0]
        raise StoreUnavailable(f"no node of the cluster holds slot {slot} now")

    async def primaries(self) -> list[Address | None]:
        """Return the primaries of all slots."""
        return list(dict.fromkeys(nodes[0] for *_, nodes in await self._all_slots()))

    async def servers(self) -> list[Address | None]:
        """Return all nodes; without the right to CLUSTER SHARDS, only those that are up."""
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
        """Return the first answer of a node. Raises NoPermissionError, StoreUnavailable."""
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
        """Return every node, also those that are down, which CLUSTER SLOTS leaves out."""
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
    """Decode a RESP 2 map: names and values in turn."""
    return dict(zip(words[::2], words[1::2], strict=False))


def _node(node: list[Any], asked: Address) -> Address:
    """Return the address of a node of CLUSTER SLOTS: [host, port, id, [names and values of metadata]].

    The host is null if it is that of the asked node (`cluster-preferred-endpoint-type unknown-endpoint`), '' if the
    node does not know its address yet, and '?' if the type is hostname and the node has no hostname.
    """
    host = (node[0] or b"").decode()
    if node[0] is not None and host in UNKNOWN_HOSTS:
        host = _pairs(node[3] if len(node) > 3 else []).get(b"ip", b"").decode()
    return Address(asked.host if host in UNKNOWN_HOSTS else host, node[1])


class Connector:
    """A factory of connections to the primary that holds a key, for any kind of store URL."""

    def __init__(self, url: str, reply_timeout_s: float = REPLY_TIMEOUT_S) -> None:
        """Parse the URL. reply_timeout_s: of a question outside the pipe, to connect and then for its answer."""
        self.url = StoreUrl.parse(url)
        self.reply_timeout_s = reply_timeout_s
        # a server behind a Unix socket has its data on a disk of this machine
        self.disk = Disk(Path(self.url.path).parent) if self.url.mode == "unix" else None
        resolvers = {"sentinel": SentinelResolver, "cluster": ClusterResolver}
        self.resolver = resolvers.get(self.url.mode, Resolver)(self.url)

    @property
    def may_fail_over(self) -> bool:
        """Return True if a replica may become primary."""
        return self.url.mode in ("sentinel", "cluster")

    async def connect(self, key: str, opens_within_s: float = OPEN_TIMEOUT_S) -> AbstractConnection:
        """Return an open connection without time-outs or retries (repeats need their sequence number).

        opens_within_s: time-out of opening it. Raises RedisError, OSError or TimeoutError.
        """
        return await open_connection(self.url, await self.resolver.primary(key), opens_within_s)

    async def is_primary(self, connection: AbstractConnection, key: str) -> bool:
        """Return whether the connected server still is the key's primary. Raises as `connect` does."""
        address = await self.resolver.primary(key)
        return address is None or (
            isinstance(connection, Connection)
            and (connection.host, connection.port) == (address.host, address.port)
        )

    async def on_every_primary(self, work: Callable[[AbstractConnection], Awaitable[None]]) -> None:
        """Call `work` on each primary, for ADMIN_TIMEOUT_S at most. Raises RedisError, OSError or TimeoutError."""
        for address in await self.resolver.primaries():
            connection = await open_connection(self.url, address)
            try:
                async with asyncio.timeout(ADMIN_TIMEOUT_S):
                    await work(connection)
            finally:
                await connection.disconnect(nowait=True)

    async def ask_every_primary(self, *command: Any) -> list[tuple[Address | None, Any]]:
        """Return each primary's reply, or its RedisError, OSError or TimeoutError.

        Raises StoreUnavailable and these if the primaries cannot be found.
        """
        return await self.ask_each(await self.resolver.primaries(), *command)

    async def ask_each(
        self, addresses: list[Address | None], *command: Any
    ) -> list[tuple[Address | None, Any]]:
        """Return each server's reply, or its RedisError, OSError or TimeoutError."""
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
    """Connect to one node (None: the URL's socket) with the URL's credentials and TLS.

    Callers set time-outs by `asyncio.timeout`: redis-py uses `wait_for`, which loses cancellations in Python 3.11.
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
    except BaseException:  # cancelled: no other code has the socket
        await made.disconnect(nowait=True)
        raise
    return made


def _tls_options(url: StoreUrl) -> dict[str, Any]:
    """Return the TLS options. Chains may end at an intermediate authority of `ssl_ca_certs`."""
    files = {name: value for name, value in url.options.items() if name in TLS_OPTIONS}
    return {"ssl_include_verify_flags": [ssl.VERIFY_X509_PARTIAL_CHAIN], **files} if url.tls else files


async def ask(connection: AbstractConnection, *command: Any) -> Any:
    """Return one command's reply, undecoded. Raises what redis-py raises."""
    await connection.send_packed_command(connection.pack_command(*command), check_health=False)
    return await connection.read_response(disable_decoding=True)


def parse_info(reply: bytes) -> dict[str, str]:
    """Parse a reply to INFO."""
    return dict(line.split(":", 1) for line in reply.decode().split("\r\n") if ":" in line)


async def drop(connection: AbstractConnection) -> None:
    """Close at once. A graceful close to a dead peer would keep the socket and unsent data for 15 minutes."""
    writer = connection._writer  # noqa: SLF001 - redis-py offers no writer
    if writer is not None:
        writer.transport.abort()
    await connection.disconnect(nowait=True)
