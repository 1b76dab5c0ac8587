"""What users of the store may do: our functions and the commands they use, on our keys and channels only.

Functions run with the caller's rights. Nothing here changes the server or sees others' data: no EVAL, FUNCTION LOAD,
CONFIG, KEYS, FLUSH. Setting a store up (`penstock store init`, `penstock up`) needs an administrator.
"""

from __future__ import annotations

from services.store.model.keys import RegistryKeys

KEY_PATTERN = "ps:{*"
COMMANDS = (
    *("fcall", "fcall_ro", "ping", "time", "info", "wait", "cluster|slots", "select"),
    *("subscribe", "unsubscribe", "publish"),
    *("get", "set", "exists", "del", "unlink", "incr", "incrby", "pexpire"),
    *(
        "hget",
        "hset",
        "hsetnx",
        "hexists",
        "hmget",
        "hgetall",
        "hdel",
        "hkeys",
        "hvals",
        "hlen",
        "hscan",
        "hincrby",
    ),
    *("smembers", "sadd", "srem"),
    *("zadd", "zrem", "zscore", "zcard", "zrange", "zrangebyscore"),
    "zpopmin",  # functions of before, until `penstock store init` loads ours
    *("xadd", "xdel", "xlen", "xrange", "xtrim", "xread", "xinfo|stream"),
    "xrevrange",  # the console, and the analytics job, where they come as the edges do
)
# The analytics job on its own: it reads everything of ours, and writes its report.
ANALYTICS_COMMANDS = (
    *("fcall", "ping", "time", "cluster|slots", "select"),
    *("get", "set", "hgetall", "hscan", "xrange", "xrevrange", "xinfo|stream"),
)


def acl_rules() -> list[str]:
    """Of the edges' user: the rules for ACL SETUSER, without the password."""
    return ["reset", "on", f"~{KEY_PATTERN}", f"&{KEY_PATTERN}", *(f"+{command}" for command in COMMANDS)]


def analytics_rules() -> list[str]:
    """Of a user for the analytics job alone, the same."""
    keys = f"%R~{KEY_PATTERN}", f"~{RegistryKeys().report}"
    return ["reset", "on", *keys, *(f"+{command}" for command in ANALYTICS_COMMANDS)]
