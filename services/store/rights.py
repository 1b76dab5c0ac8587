"""What the edges' user of the store may do: our functions and the commands they use, on our keys and channels only.

Functions run with the caller's rights. Nothing here changes the server or sees others' data: no EVAL, FUNCTION LOAD,
CONFIG, KEYS, FLUSH. Setting a store up (`penstock store init`, `penstock up`) needs an administrator.
"""

from __future__ import annotations

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
    *("zadd", "zrem", "zscore", "zcard", "zrange", "zrangebyscore", "zpopmin"),
    *("xadd", "xdel", "xlen", "xrange", "xtrim", "xread", "xinfo|stream"),
)


def acl_rules() -> list[str]:
    """The rules for ACL SETUSER, without the password."""
    return ["reset", "on", f"~{KEY_PATTERN}", f"&{KEY_PATTERN}", *(f"+{command}" for command in COMMANDS)]
