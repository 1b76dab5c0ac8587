"""Parse the options of the data source `redis_stream`: texts, whose names are not case-sensitive."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from services.outside.document import read_json
from services.outside.url import BadUrl
from services.redis_stream.columns import WHOLE
from services.redis_stream.schema import Kind
from services.store.catalogue import BEGINNING, LAST_NUMBER
from services.store.redis import StoreUrl

ID = re.compile(r"([0-9]{1,20})-([0-9]{1,20})")
DIGITS = re.compile(r"[0-9]{1,12}")
URL_VARIABLES = ("PENSTOCK_STORE__URL", "REDIS_URL")
MAX_NUMBER = 1 << 31


class OptionError(ValueError):
    """An option is unknown, missing or invalid; the text says what to write."""


@dataclass(frozen=True)
class Options:
    """Checked options of a query. `parse` makes them of Spark's texts."""

    # options `url`, `username`, `password`, `passwordFile`: the store
    url: str = field(repr=False)
    kind: Kind = Kind.ENTRIES  # option `kind`: `entries`, `dead` or `samples`
    stream: str = ""  # option `stream`: the key, only of `entries`
    domains: tuple[str, ...] = ()  # option `domain`: only these, of `dead` and `samples`
    queues: tuple[str, ...] = ()  # option `queue`: only these, of `dead`
    # option `start`: the id behind which to read, of each stream or of all
    start: str | dict[str, str] = BEGINNING
    # option `end`: the id up to which to read; '': the last one when the query is planned
    end: str | dict[str, str] = ""
    rows_per_partition: int = 100_000  # option `rowsPerPartition`: entries of one task, about
    min_partitions: int = 1  # option `minPartitions`: of each stream, about
    page_rows: int = 250  # option `pageRows`: entries of one request to the store
    bodies: int = WHOLE  # option `bodies`: octets of each body to keep; -1: all
    fail_on_loss: bool = True  # option `failOnDataLoss`: fail if entries are missing
    fail_on_malformed: bool = False  # option `onMalformed` is `fail`: fail at an unreadable entry
    reply_timeout_s: float = 30.0  # option `readTimeoutS`: seconds that one answer may take
    patience_s: float = 30.0  # option `connectTimeoutS`: seconds for which an unreachable store is retried
    max_rows: int = 0  # option `max_rows`: of one batch of a streaming query; 0: all there are

    @classmethod
    def parse(cls, told: Mapping[str, str]) -> Options:
        """Check options as Spark passes them.

        Args:
            told: Texts by option name, in any case. Without `url`, the environment's `PENSTOCK_STORE__URL` or
                `REDIS_URL` is used.

        Raises:
            OptionError: For an option that is unknown, missing, invalid, or of no use with this `kind`.
        """
        given = {name.lower(): value for name, value in told.items()}
        unknown = sorted(set(given) - KNOWN)
        if unknown:
            raise OptionError(f"unknown option {unknown[0]!r}; known options: {', '.join(sorted(_NAMES))}")
        kind = _kind(given.get("kind", Kind.ENTRIES))
        _check_place(kind, given)
        return cls(
            url=_url(given),
            kind=kind,
            stream=given.get("stream", ""),
            domains=_names("domain", given),
            queues=_names("queue", given),
            start=_ids("start", given, BEGINNING),
            end=_ids("end", given, ""),
            rows_per_partition=_number("rowsPerPartition", given, cls.rows_per_partition, 1),
            min_partitions=_number("minPartitions", given, cls.min_partitions, 1),
            page_rows=_number("pageRows", given, cls.page_rows, 1),
            bodies=_bodies(given.get("bodies", "full")),
            fail_on_loss=_truth("failOnDataLoss", given, True),
            fail_on_malformed=_choice("onMalformed", given, ("quarantine", "fail")) == "fail",
            reply_timeout_s=_seconds("readTimeoutS", given, cls.reply_timeout_s),
            patience_s=_seconds("connectTimeoutS", given, cls.patience_s),
            max_rows=_number("max_rows", given, 0, 0),
        )

    def start_of(self, key: str) -> str:
        """Return the id behind which to read the stream with this key."""
        return self.start if isinstance(self.start, str) else self.start.get(key, BEGINNING)

    def end_of(self, key: str) -> str:
        """Return the id up to which to read the stream with this key; a stream that `end` does not name is not read."""
        return self.end if isinstance(self.end, str) else self.end.get(key, BEGINNING)


_NAMES = (
    *("url", "username", "password", "passwordFile", "kind", "stream", "domain", "queue", "start", "end"),
    *("rowsPerPartition", "minPartitions", "pageRows", "bodies", "failOnDataLoss", "onMalformed"),
    *("connectTimeoutS", "readTimeoutS", "max_rows"),
)
# Spark adds an empty `path` when a table is loaded.
KNOWN = {name.lower() for name in _NAMES} | {"path"}


def _kind(value: str) -> Kind:
    try:
        return Kind(value.lower())
    except ValueError:
        raise OptionError(f"option kind is {value!r}: use one of {', '.join(Kind)}") from None


def _check_place(kind: Kind, given: Mapping[str, str]) -> None:
    if kind is Kind.ENTRIES and not given.get("stream"):
        raise OptionError("option stream is missing: give the key of a stream, or kind 'dead' or 'samples'")
    if kind is not Kind.ENTRIES and given.get("stream"):
        raise OptionError(
            f"option stream cannot be used with kind '{kind}', whose streams are found in the store"
        )
    if kind is not Kind.DEAD and given.get("queue"):
        raise OptionError("option queue is only for kind 'dead'")
    if kind is Kind.ENTRIES and given.get("domain"):
        raise OptionError("option domain is only for kinds 'dead' and 'samples'")


def _url(given: Mapping[str, str]) -> str:
    url = given.get("url") or next((os.environ[name] for name in URL_VARIABLES if os.environ.get(name)), "")
    if not url:
        raise OptionError(
            f"option url is missing: give it, or set {' or '.join(URL_VARIABLES)} in the environment"
        )
    try:
        StoreUrl.parse(url)
    except BadUrl as error:
        raise OptionError(f"option url: {error}") from None
    return _with_login(url, given.get("username", ""), _password(given))


def _password(given: Mapping[str, str]) -> str:
    if "passwordfile" not in given:
        return given.get("password", "")
    if "password" in given:
        raise OptionError("options password and passwordFile are both set: give one of them")
    try:
        return Path(given["passwordfile"]).read_text().rstrip("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise OptionError(f"option passwordFile: {error}") from None


def _with_login(url: str, username: str, password: str) -> str:
    if not username and not password:
        return url
    if not password:
        raise OptionError("option username needs a password, or a passwordFile")
    if StoreUrl.parse(url).credentials:
        raise OptionError("option url contains a login: leave out the options username and password")
    scheme, mark, rest = url.partition("://")
    return f"{scheme}{mark}{quote(username, safe='')}:{quote(password, safe='')}@{rest}"


def _names(name: str, given: Mapping[str, str]) -> tuple[str, ...]:
    """Return names separated by commas, or a JSON list, as names may contain commas."""
    value = given.get(name, "")
    if not value.startswith("["):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    try:
        found = read_json(value)
    except ValueError as error:
        raise OptionError(f"option {name} is not a JSON list: {error}") from None
    if not all(isinstance(each, str) for each in found):
        raise OptionError(f"option {name} must be a list of names, separated by commas or as JSON")
    return tuple(found)


def _ids(name: str, given: Mapping[str, str], usual: str) -> str | dict[str, str]:
    value = given.get(name.lower(), "")
    if not value:
        return usual
    if not value.lstrip().startswith("{"):
        return _id(name, value)
    try:
        found = read_json(value)
    except ValueError as error:
        raise OptionError(f"option {name} is not a JSON object: {error}") from None
    return {key: _id(name, each) for key, each in found.items()}


def _id(name: str, value: object) -> str:
    found = ID.fullmatch(value) if isinstance(value, str) else None
    if found is not None and all(int(number) <= LAST_NUMBER for number in found.groups()):
        return found[0]
    raise OptionError(f"option {name}: {value!r} is not an id: write '1700000000000-0', or JSON {{key: id}}")


def _number(name: str, given: Mapping[str, str], usual: int, least: int) -> int:
    value = given.get(name.lower(), str(usual))
    if DIGITS.fullmatch(value) and least <= int(value) < MAX_NUMBER:
        return int(value)
    raise OptionError(f"option {name} is {value!r}: use a number from {least} to {MAX_NUMBER - 1}")


def _seconds(name: str, given: Mapping[str, str], usual: float) -> float:
    value = given.get(name.lower(), str(usual))
    try:
        found = float(value)
    except ValueError:
        found = -1.0
    if 0 < found < MAX_NUMBER:
        return found
    raise OptionError(f"option {name} is {value!r}: use a number of seconds above 0")


def _bodies(value: str) -> int:
    words = {"full": WHOLE, "none": 0}
    if value.lower() in words:
        return words[value.lower()]
    if DIGITS.fullmatch(value) and int(value) < MAX_NUMBER:
        return int(value)
    raise OptionError(
        f"option bodies is {value!r}: use full, none, or the number of octets to keep of each body"
    )


def _truth(name: str, given: Mapping[str, str], usual: bool) -> bool:
    return _choice(name, given, ("true", "false"), str(usual).lower()) == "true"


def _choice(name: str, given: Mapping[str, str], words: tuple[str, ...], usual: str = "") -> str:
    value = given.get(name.lower(), usual or words[0]).lower()
    if value in words:
        return value
    raise OptionError(f"option {name} is {value!r}: use {' or '.join(words)}")
