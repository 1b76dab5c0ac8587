"""Set and compare users on every server of a store, as Redis does not replicate them."""

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
NOT_KEPT = "until it restarts: give it an `aclfile`, or a configuration file that it can write"
APPLY = (
    "Redis does not replicate users, so edges are refused after a failover: set the user on every server with "
    "`penstock store rights --apply`"
)


@dataclass(frozen=True, slots=True)
class Applied:
    """The result on one server: `fault` says why the user was not set, `kept` how long it lasts."""

    server: str
    fault: str = ""
    kept: str = ""


async def apply_user(connector: Connector, name: str, rules: Sequence[str], password: str) -> list[Applied]:
    """Set the user on every server that the Sentinels or the Cluster name, and save it there.

    The password is sent as its hash, so that no server logs it. Raises StoreError if the servers cannot be found.
    """
    try:
        servers = await connector.resolver.servers()
    except (RedisError, OSError, TimeoutError) as error:
        raise explain(error) from error
    secret = f"#{hashlib.sha256(password.encode()).hexdigest()}"
    answers = await connector.ask_each(servers, "ACL", "SETUSER", name, *rules, secret)
    return [await _kept(connector, server, answer) for server, answer in answers]


async def _kept(connector: Connector, server: Address | None, answer: object) -> Applied:
    place = str(server or "the socket")
    if isinstance(answer, Exception):
        return Applied(place, fault=str(explain(answer)))
    ((_, saved),) = await connector.ask_each([server], "ACL", "SAVE")
    if not isinstance(saved, Exception):
        return Applied(place, kept="in its ACL file")
    if isinstance(saved, ResponseError):  # the server has no ACL file
        ((_, saved),) = await connector.ask_each([server], "CONFIG", "REWRITE")
    return Applied(place, kept=NOT_KEPT if isinstance(saved, Exception) else "in its configuration file")


async def check_users(connector: Connector) -> Finding:
    """Return whether all servers have the same users, with the same passwords and rights."""
    try:
        servers = await connector.resolver.servers()
    except (RedisError, OSError, TimeoutError, StoreUnavailable) as error:
        return Finding(SUBJECT, Grade.FAIL, str(explain(error)), "check the store")
    answers = await connector.ask_each(servers, "ACL", "LIST")
    commands = Commands()
    for _, answer in await connector.ask_each(servers, "COMMAND"):
        if not isinstance(answer, Exception):
            commands.learn(answer)
    lists = {
        str(server): dict(map(commands.user, answer))
        for server, answer in answers
        if not isinstance(answer, Exception)
    }
    faults = [*_differences(lists), *_refusals(answers)]
    if faults:
        return Finding(SUBJECT, Grade.FAIL, "; ".join(faults), APPLY)
    hidden = len(servers) - len(lists)
    if hidden:
        found = f"this user can log in on each of {len(servers)} servers; not permitted to check others"
        return Finding(SUBJECT, Grade.WARN, found, "needs an administrator's rights")
    names = ", ".join(sorted(next(iter(lists.values()), {})))
    return Finding(SUBJECT, Grade.OK, f"{names}: the same on {len(servers)} servers")


def _differences(lists: dict[str, dict[str, Rights]]) -> Iterable[str]:
    for name in sorted({name for users in lists.values() for name in users}):
        lacking = [server for server, users in lists.items() if name not in users]
        if lacking:
            yield f"{name} is missing on {', '.join(lacking)}"
            continue
        (usual, times), *others = Counter(users[name] for users in lists.values()).most_common()
        if not others:
            continue
        unlike = [server for server, users in lists.items() if users[name] != usual]
        if times > len(unlike):
            yield f"{name} has other passwords or rights on {', '.join(unlike)} than on the other servers"
        else:
            yield f"{name} has different passwords or rights on {', '.join(lists)}"


def _refusals(answers: Iterable[tuple[Address | None, object]]) -> Iterable[str]:
    for server, answer in answers:
        if isinstance(answer, AuthenticationError):
            yield f"{server} refuses the user of this URL ({answer})"
        elif isinstance(answer, Exception) and not isinstance(answer, NoPermissionError):
            yield f"{server} cannot be asked ({explain(answer)})"
