"""Check a store for `penstock doctor`.

Checks need an administrator's rights; a check for which the user lacks a right becomes a warning.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable

from redis.exceptions import NoPermissionError, RedisError, ResponseError

from services.store.model.ack_levels import Promises
from services.store.model.clock import now, wall_offset_ms
from services.store.model.errors import AckLevelRefused, NotInitialised, StoreError
from services.store.model.keys import DomainKeys
from services.store.pipeline.domain import SESSION_TIMEOUT_MS, Domain
from services.store.redis.library import LIBRARY, loaded, source
from services.store.redis.link import UNWRITABLE, Link, explain_here
from services.store.redis.memory import PUBLISH_LIMIT
from services.store.redis.probe import Finding, Grade, findings, hidden, probe
from services.store.redis.users import check_users
from services.store.store import Store

NEARLY = 0.6
CLOCK_MS = 1000  # a larger difference makes ages and timeouts misleading
UNREADABLE = "use the version that wrote it, replace it in the console, or delete it and declare it again"
NAMED = 5  # examples in one finding


async def examine(store: Store, *, production: bool = False) -> list[Finding]:
    """Return all findings in a fixed order. Raises StoreUnavailable if the store cannot be reached."""
    try:
        found = await probe(store.connector)
    except (RedisError, OSError, TimeoutError) as error:
        raise await explain_here(error, store.connector) from error
    return [finding async for finding in _findings(store, found, production)]


async def _findings(store: Store, found: Promises, production: bool) -> AsyncIterator[Finding]:
    for finding in findings(found, production=production):
        yield finding
    link = store.registry.link
    if store.connector.may_fail_over:
        yield await check_users(store.connector)
    yield await _allowed("disk", _disk(link))
    yield await _allowed("memory used", _memory(link))
    yield await _allowed("clock", _clock(link))
    yield await _allowed("functions", _functions(link, "functions"))
    try:
        epoch = await store.registry.epoch()
    except NotInitialised as error:
        yield Finding("dataset", Grade.FAIL, "none", str(error))
        return
    yield Finding("dataset", Grade.OK, epoch)
    yield await _recorded(store, found)
    for name in await store.registry.domains():
        try:
            async for finding in _domain(store.get_domain(name), epoch):
                yield finding
        except StoreError as error:  # only its shard is unreachable
            yield Finding(f"domain {name}", Grade.FAIL, str(error), "check the server that holds it")
    yield await _queues(store, found)


async def _allowed(subject: str, check: Awaitable[Finding]) -> Finding:
    """Return the finding, or a warning if this user lacks the right to check."""
    try:
        return await check
    except StoreError as error:
        if not isinstance(error.__cause__, NoPermissionError):
            raise
        return hidden(subject)


async def _info(link: Link, section: str) -> dict[str, str]:
    text = (await link.call("INFO", section)).decode()
    return dict(line.split(":", 1) for line in text.split("\r\n") if ":" in line)


async def _disk(link: Link) -> Finding:
    """Check that servers can write; a server that cannot answers PING with the reason."""
    advice = "free disk space, or make the disk writable; check the server's log"
    for address, answer in await link.connector.ask_every_primary("PING"):
        if isinstance(answer, ResponseError) and str(answer).startswith(UNWRITABLE):
            place = f"{address}: " if address is not None else ""
            return Finding("disk", Grade.FAIL, f"{place}{answer}", advice)
    trouble = await link.connector.disk.trouble() if link.connector.disk is not None else None
    if trouble is not None and not trouble.is_writable:
        return Finding("disk", Grade.FAIL, trouble.text, advice)
    info = await _info(link, "persistence")
    if info.get("aof_enabled") != "1":
        return Finding("disk", Grade.OK, "the AOF is off: nothing is written to disk")
    if info.get("aof_last_write_status") != "ok":
        return Finding(
            "disk", Grade.FAIL, "the last write failed", "free disk space, and check the server's log"
        )
    if trouble is not None:
        return Finding("disk", Grade.WARN, f"{trouble.text}; the last write was ok", advice)
    if info.get("aof_last_bgrewrite_status") != "ok":
        return Finding("disk", Grade.WARN, "the last rewrite of the AOF failed", "check the server's log")
    return Finding("disk", Grade.OK, f"AOF of {int(info.get('aof_current_size', 0)):,} bytes, last write ok")


async def _memory(link: Link) -> Finding:
    info = await _info(link, "memory")
    used, limit = int(info["used_memory"]), int(info.get("maxmemory", 0))
    if not limit:
        return Finding("memory used", Grade.OK, f"{used:,} bytes")
    text = f"{used:,} bytes, {used / limit:.0%} of maxmemory"
    if used > PUBLISH_LIMIT * limit:
        return Finding(
            "memory used", Grade.FAIL, text, "puts are refused: take messages out, or raise maxmemory"
        )
    if used > NEARLY * limit:
        return Finding("memory used", Grade.WARN, text, f"puts are refused above {PUBLISH_LIMIT:.0%}")
    return Finding("memory used", Grade.OK, text)


async def _clock(link: Link) -> Finding:
    asked = now()
    off_ms = wall_offset_ms(await link.now_ms(), asked)
    text = f"the store's is {abs(off_ms)} ms {'ahead' if off_ms >= 0 else 'behind'}"
    if abs(off_ms) > CLOCK_MS:
        return Finding(
            "clock", Grade.WARN, text, "synchronize the clocks by NTP: times shown are the store's"
        )
    return Finding("clock", Grade.OK, text)


async def _functions(link: Link, subject: str) -> Finding:
    listed = await link.call("FUNCTION", "LIST", "LIBRARYNAME", LIBRARY, "WITHCODE")
    advice = "run `penstock store init` to load the functions of this version"
    fields = loaded(listed)
    if not fields:
        return Finding(subject, Grade.FAIL, f"{LIBRARY} is not loaded", advice)
    if fields[b"library_code"].decode() != source():
        return Finding(subject, Grade.FAIL, f"{LIBRARY} is of another version", advice)
    return Finding(subject, Grade.OK, f"{LIBRARY}, {len(fields[b'functions'])} functions, of this version")


async def _recorded(store: Store, found: Promises) -> Finding:
    """Compare the recorded guarantees, which edges rely on, with the current ones."""
    try:
        believed = await store.promises.now()
    except NotInitialised:
        return Finding("promises", Grade.FAIL, "not recorded yet", "run `penstock store init`")
    if not found.settings or believed.levels() == found.levels():
        return Finding("promises", Grade.OK, f"edges rely on {', '.join(believed.levels())}")
    return Finding(
        "promises",
        Grade.FAIL,
        f"edges rely on {', '.join(believed.levels())}, the store guarantees {', '.join(found.levels())}",
        "run `penstock store init` to record the current guarantees",
    )


async def _domain(domain: Domain, epoch: str) -> AsyncIterator[Finding]:
    subject = f"domain {domain.name}"
    theirs = await domain.epoch()
    if theirs.partition(".")[0] != epoch.partition(".")[0]:
        advice = "restore its shard, or accept the loss with `penstock store init --accept-loss`"
        yield Finding(
            subject, Grade.FAIL, f"dataset {theirs or 'none'}, but the registry has {epoch}", advice
        )
        return
    yield Finding(subject, Grade.OK, f"epoch {theirs}")
    functions = await _allowed(f"{subject} functions", _functions(domain.link, f"{subject} functions"))
    if functions.grade is Grade.FAIL:  # a missing right is reported for the registry only
        yield functions
    sessions = f"{subject} sessions"
    yield await _allowed(sessions, _sessions(domain.link, domain.keys, sessions))


async def _sessions(link: Link, keys: DomainKeys, subject: str) -> Finding:
    limit = await link.now_ms() - SESSION_TIMEOUT_MS
    listed = await link.call("ZRANGE", keys.sessions, 0, -1, "WITHSCORES")
    dying = int(await link.call("ZCARD", keys.dying))
    alive = [listed[i].decode() for i in range(0, len(listed), 2) if float(listed[i + 1]) >= limit]
    silent = len(listed) // 2 - len(alive) + dying
    text = f"{len(alive)} alive" + (f" ({_some(alive)})" if alive else "")
    if silent:
        advice = "an edge died; a running edge will return its leases"
        return Finding(subject, Grade.WARN, f"{text}, {silent} silent", advice)
    return Finding(subject, Grade.OK, text)


async def _queues(store: Store, found: Promises) -> Finding:
    """Check that all queues are readable, and that their ack levels can be guaranteed."""
    known = found if found.settings else await store.promises.now()
    total, broken, why = 0, [], ""
    unreadable: dict[str, str] = {}
    try:
        async for queue in store.listing.queues(unreadable=unreadable.__setitem__):
            total += 1
            try:
                known.check(queue.spec.ack_level)
            except AckLevelRefused as error:
                broken.append(f"{queue.name} ({queue.spec.ack_level})")
                why = str(error)
    except StoreError as error:
        return Finding("queues", Grade.FAIL, str(error), "check the store")
    if unreadable:
        text = (
            f"{len(unreadable)} of {total + len(unreadable)} cannot be read: {_some([*unreadable.values()])}"
        )
        return Finding("queues", Grade.FAIL, text, UNREADABLE)
    if broken:
        return Finding(
            "queues", Grade.FAIL, f"{len(broken)} of {total}: {_some(broken)} cannot be guaranteed", why
        )
    return Finding("queues", Grade.OK, f"{total}, and all ack levels can be guaranteed")


def _some(names: list[str]) -> str:
    more = len(names) - NAMED
    return ", ".join(names[:NAMED]) + (f" and {more} more" if more > 0 else "")
