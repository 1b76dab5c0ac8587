"""Users on every server of a store. Redis does not replicate them: a replica that takes over refuses one it lacks."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from redis.exceptions import AuthenticationError, NoPermissionError, RedisError, ResponseError

from services.store.model.errors import StoreUnavailable
from services.store.redis.acl import Commands, Rights
from services.store.redis.connect import Connector
from services.store.redis.link import explain
from services.store.redis.probe import Finding, Grade
from services.store.redis.url import Address

SUBJECT = "users"
NOT_KEPT = "until it restarts: give it an `aclfile`, or a configuration file that it may write"
APPLY = (
    "Redis does not replicate users, and edges are refused after a failover: `penstock store rights --apply` sets one "
    "on every server"
)


@dataclass(frozen=True, slots=True)
class Applied:
    """What became of a user on one server: `fault` says why it is not there, `kept` for how long it is."""

    server: str
    fault: str = ""
    kept: str = ""


async def apply_user(connector: Connector, name: str, rules: Sequence[str], password: str) -> list[Applied]:
    """Sets the user on every server that the Sentinels or the Cluster name, and has it kept there.

    The password goes there as its hash: none is in a server's log. Raises StoreError where it is not known which
    servers there are.
    """
    try:
        servers = await connector.resolver.servers()
    except (RedisError, OSError, TimeoutError) as error:
        raise explain(error) from error
    secret = f"#{hashlib.sha256(password.encode()).hexdigest()}"
    told = await connector.ask_each(servers, "ACL", "SETUSER", name, *rules, secret)
    return [await _kept(connector, server, answer) for server, answer in told]


async def _kept(connector: Connector, server: Address | None, answer: object) -> Applied:
    place = str(server or "the socket")
    if isinstance(answer, Exception):
        return Applied(place, fault=str(explain(answer)))
    ((_, saved),) = await connector.ask_each([server], "ACL", "SAVE")
    if not isinstance(saved, Exception):
        return Applied(place, kept="in its ACL file")
    if isinstance(saved, ResponseError):  # it has none
        ((_, saved),) = await connector.ask_each([server], "CONFIG", "REWRITE")
    return Applied(place, kept=NOT_KEPT if isinstance(saved, Exception) else "in its configuration file")


async def check_users(connector: Connector) -> Finding:
    """Whether every server has the users of the others, with the same passwords and rights."""
    try:
        servers = await connector.resolver.servers()
    except (RedisError, OSError, TimeoutError, StoreUnavailable) as error:
        return Finding(SUBJECT, Grade.FAIL, str(explain(error)), "look at the store")
    told = await connector.ask_each(servers, "ACL", "LIST")
    commands = Commands()
    for _, answer in await connector.ask_each(servers, "COMMAND"):
        if not isinstance(answer, Exception):
            commands.learn(answer)
    lists = {
        str(server): dict(map(commands.user, answer))
        for server, answer in told
        if not isinstance(answer, Exception)
    }
    faults = [*_differences(lists), *_refusals(told)]
    if faults:
        return Finding(SUBJECT, Grade.FAIL, "; ".join(faults), APPLY)
    hidden = len(servers) - len(lists)
    if hidden:
        who = f"this user may log in on each of {len(servers)} servers; others may not be looked at"
        return Finding(SUBJECT, Grade.WARN, who, "needs an administrator's rights")
    names = ", ".join(sorted(next(iter(lists.values()), {})))
    return Finding(SUBJECT, Grade.OK, f"{names}: the same on {len(servers)} servers")


def _differences(lists: dict[str, dict[str, Rights]]) -> Iterable[str]:
    for name in sorted({name for users in lists.values() for name in users}):
        lacking = [server for server, users in lists.items() if name not in users]
        if lacking:
            yield f"{name} is not on {', '.join(lacking)}"
            continue
        (usual, times), *others = Counter(users[name] for users in lists.values()).most_common()
        if not others:
            continue
        unlike = [server for server, users in lists.items() if users[name] != usual]
        if times > len(unlike):
            yield f"{name} has other passwords or rights on {', '.join(unlike)} than on the other servers"
        else:
            yield f"{name} has not the same passwords and rights on {', '.join(lists)}"


def _refusals(told: Iterable[tuple[Address | None, object]]) -> Iterable[str]:
    for server, answer in told:
        if isinstance(answer, AuthenticationError):
            yield f"{server} refuses the user of this URL ({answer})"
        elif isinstance(answer, Exception) and not isinstance(answer, NoPermissionError):
            yield f"{server} cannot be asked ({explain(answer)})"
