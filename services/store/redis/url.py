"""Parse a store's URL.

redis://[user:password@]host:port/db          rediss:// for TLS       unix://[user:password@]/path/to/socket[?db=N]
redis+sentinel://[user:password@]host:port,host:port/service          rediss+sentinel:// for TLS
redis+cluster://[user:password@]host:port,host:port                   rediss+cluster:// for TLS
query: with TLS ssl_ca_certs, ssl_certfile, ssl_keyfile; with Sentinel sentinel_username, sentinel_password
Special characters in every part are percent-encoded. Unknown or ambiguous parts are rejected.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from services.outside.url import BadUrl, Url, decoded, parse_url

SCHEMES = ("redis", "rediss", "unix", "redis+sentinel", "rediss+sentinel", "redis+cluster", "rediss+cluster")
STORE_PORT = 6379
SENTINEL_PORT = 26379
TLS_OPTIONS = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")
SENTINEL_OPTIONS = ("sentinel_username", "sentinel_password")
_DATABASE = re.compile(r"[0-9]{1,9}", re.ASCII)
_LOGIN = "write the user and password before the host, as in redis://user:password@host:6379"
_TLS = "TLS is chosen by the scheme, as in rediss://host:6379"
HINTS = {
    **dict.fromkeys(("db", "database"), "the database is the path, as in redis://host:6379/3"),
    **dict.fromkeys(("user", "username", "password", "auth"), _LOGIN),
    **dict.fromkeys(("ssl", "tls"), _TLS),
    **dict.fromkeys(TLS_OPTIONS, f"options that begin with ssl_ need TLS: {_TLS}"),
    **dict.fromkeys(SENTINEL_OPTIONS, "options that begin with sentinel_ need redis+sentinel://"),
}


@dataclass(frozen=True, slots=True)
class Address:
    """The address of a server."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class StoreUrl:
    """The parts of a store URL. Its repr contains no secret."""

    mode: str  # single | unix | sentinel | cluster
    addresses: tuple[Address, ...]
    path: str = ""  # of the socket, or the Sentinel service's name
    db: int = 0
    tls: bool = False
    options: dict[str, str] = field(default_factory=dict, repr=False)
    credentials: dict[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def parse(cls, text: str) -> StoreUrl:
        """Parse a URL. Raises BadUrl, which says what to write and repeats no part of the URL."""
        if text.partition("://")[0].lower() not in SCHEMES or "://" not in text:
            raise BadUrl(f"a store URL begins with one of {', '.join(s + '://' for s in SCHEMES)}")
        url = parse_url(text)
        credentials = _credentials(url)
        if url.scheme == "unix":
            db = _database(url.options(("db",), HINTS).get("db", ""))
            return cls("unix", (), _socket(url), db, credentials=credentials)
        mode = url.scheme.partition("+")[2] or "single"
        tls = url.scheme.startswith("rediss")
        if not url.hosts:
            raise BadUrl("a store URL names at least one host, as in redis://127.0.0.1:6379")
        if mode == "single" and len(url.hosts) > 1:
            raise BadUrl("several hosts need redis+sentinel:// or redis+cluster://")
        port = SENTINEL_PORT if mode == "sentinel" else STORE_PORT
        addresses = tuple(Address(host, own or port) for host, own in url.hosts)
        allowed = (*(TLS_OPTIONS if tls else ()), *(SENTINEL_OPTIONS if mode == "sentinel" else ()))
        options = url.options(allowed, HINTS)
        if "ssl_keyfile" in options and "ssl_certfile" not in options:
            raise BadUrl("ssl_keyfile needs ssl_certfile: give both, or neither")
        path = decoded(url.path).removeprefix("/")
        if mode == "sentinel" and (not path or "/" in path):
            raise BadUrl(
                "a Sentinel URL ends with the service's name, as in redis+sentinel://host:26379/mymaster"
            )
        if mode == "cluster" and path not in ("", "0"):
            raise BadUrl("a Cluster has only database 0: leave out the path of redis+cluster://")
        db = _database(path) if mode == "single" else 0
        return cls(mode, addresses, path, db, tls, options, credentials)


def _credentials(url: Url) -> dict[str, str]:
    if url.user is None:
        return {}
    if url.password is None:
        raise BadUrl(
            "the user has no password: write user:password@host, or :password@host for the default user"
        )
    return {name: text for name, text in (("username", url.user), ("password", url.password)) if text}


def _socket(url: Url) -> str:
    path = decoded(url.path)
    if url.hosts or not path or "\0" in path:
        raise BadUrl("a unix URL has no host and names the socket, as in unix:///run/store.sock")
    return path


def _database(number: str) -> int:
    if number and not _DATABASE.fullmatch(number):
        raise BadUrl("a store URL ends with the number of a database, as in redis://host:6379/3")
    return int(number or "0")
