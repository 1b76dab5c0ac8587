"""ACL rules for the store's users: the library's functions and their commands, on the store's keys and channels.

Functions run with the caller's rights. No user can change the server or read other data: no EVAL, FUNCTION LOAD,
CONFIG, KEYS, FLUSH. Setting up a store (`penstock store init`, `penstock up`) needs an administrator.
"""

from __future__ import annotations

from services.store.model.keys import RegistryKeys

KEY_PATTERN = "ps:{*"
COMMANDS = (
    *("fcall", "fcall_ro", "ping", "time", "info", "wait", "cluster|slots", "select"),
    *("subscribe", "unsubscribe", "publish"),
    *("get", "set", "exists", "del", "unlink", "incr", "incrby", "pexpire"),
    *("hget", "hset", "hsetnx", "hexists", "hmget", "hgetall", "hdel", "hkeys", "hvals", "hlen", "hscan"),
    "hincrby",
    *("smembers", "sadd", "srem"),
    *("zadd", "zrem", "zscore", "zcard", "zrange", "zrangebyscore"),
    "zpopmin",  # functions of older versions, until `penstock store init` loads the new ones
    *("xadd", "xdel", "xlen", "xrange", "xtrim", "xread", "xinfo|stream"),
    "xrevrange",  # the console, and the analytics job with the edges' user
)
# The analytics job's own user reads all of the store's keys and writes the report.
ANALYTICS_COMMANDS = (
    *("fcall", "ping", "time", "cluster|slots", "select"),
    *("get", "set", "hgetall", "hscan", "xrange", "xrevrange", "xinfo|stream"),
)


def acl_rules() -> list[str]:
    """Return the ACL SETUSER rules of the edges' user, without the password."""
    return ["reset", "on", f"~{KEY_PATTERN}", f"&{KEY_PATTERN}", *(f"+{command}" for command in COMMANDS)]


def analytics_rules() -> list[str]:
    """Return the ACL SETUSER rules of a user for the analytics job only, without the password."""
    keys = f"%R~{KEY_PATTERN}", f"~{RegistryKeys().report}"
    return ["reset", "on", *keys, *(f"+{command}" for command in ANALYTICS_COMMANDS)]
