"""Where a store is: its URL taken apart.

redis://[user:password@]host:port/db          rediss:// for TLS       unix:///path/to/socket
redis+sentinel://[user:password@]host:port,host:port/service          rediss+sentinel:// for TLS
redis+cluster://[user:password@]host:port,host:port                   rediss+cluster:// for TLS
query: ssl_ca_certs, ssl_certfile, ssl_keyfile, sentinel_username, sentinel_password
"""

from __future__ import annotations

from dataclasses import dataclass, field
from urllib.parse import parse_qsl, unquote, urlsplit

SCHEMES = ("redis", "rediss", "unix", "redis+sentinel", "rediss+sentinel", "redis+cluster", "rediss+cluster")
STORE_PORT = 6379
SENTINEL_PORT = 26379
TLS_OPTIONS = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")


@dataclass(frozen=True, slots=True)
class Address:
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class StoreUrl:
    """A store URL taken apart. Raises ValueError, saying what to write, from `parse`."""

    mode: str  # single | unix | sentinel | cluster
    addresses: tuple[Address, ...]
    path: str = ""  # of the socket, or the Sentinel service's name
    db: int = 0
    tls: bool = False
    options: dict[str, str] = field(default_factory=dict)
    credentials: dict[str, str] = field(default_factory=dict)

    @classmethod
    def parse(cls, url: str) -> StoreUrl:
        parts = urlsplit(url)
        if parts.scheme not in SCHEMES:
            raise ValueError(f"a store URL begins with one of {', '.join(s + '://' for s in SCHEMES)}")
        options = dict(parse_qsl(parts.query))
        login, _, places = parts.netloc.rpartition("@")
        user, _, password = login.partition(":")
        credentials = {k: unquote(v) for k, v in (("username", user), ("password", password)) if v}
        tls = parts.scheme.startswith("rediss")
        if parts.scheme == "unix":
            if not parts.path:
                raise ValueError("a unix URL names the socket, as in unix:///run/store.sock")
            db = _database(options.pop("db", ""))
            return cls("unix", (), unquote(parts.path), db, False, options, credentials)
        mode = parts.scheme.partition("+")[2] or "single"
        port = SENTINEL_PORT if mode == "sentinel" else STORE_PORT
        addresses = tuple(_address(place, port) for place in places.split(",") if place)
        if not addresses:
            raise ValueError("a store URL names at least one host, as in redis://127.0.0.1:6379")
        path = unquote(parts.path.strip("/"))
        if mode == "sentinel" and not path:
            raise ValueError(
                "a Sentinel URL ends with the service's name, as in redis+sentinel://host:26379/mymaster"
            )
        db = _database(path) if mode == "single" else 0
        return cls(mode, addresses, path, db, tls, options, credentials)


def _database(number: str) -> int:
    if number and not number.isdecimal():
        raise ValueError(f"a store URL ends with the number of a database, not with {number!r}")
    return int(number or "0")


def _address(place: str, usual_port: int) -> Address:
    host, _, port = place.rpartition(":") if ":" in place and not place.endswith("]") else (place, "", "")
    if not host:
        raise ValueError(f"a store URL names at least one host; {place!r} has none")
    if port and not (port.isdecimal() and 0 < int(port) < 1 << 16):
        raise ValueError(f"{place!r} is no host:port")
    return Address(host.strip("[]"), int(port or usual_port))
