"""Redact secrets in texts and octets, by RE2 patterns, whose time is linear in the input."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

import msgpack
import pyarrow as pa
import pyarrow.compute as pc

from services.analytics.cleaning.attributes import Attributes
from services.analytics.cleaning.stray_octets import as_octets, as_text
from services.redis_stream.schema import FIELDS, OCTETS, TEXT

REDACTED = "[redacted]"
BODY = "body"  # name of the field
UNREADABLE: bytes = msgpack.packb(REDACTED)  # replaces attributes that cannot be decoded
# a value in a problem: cut, and with invisible characters escaped
VALUE = r""" is (?:'.*'|".*")(?:\.\.\.)?:"""


def trouble(pattern: str) -> str:
    """Return why a pattern cannot be used; '' if it can."""
    if not pattern:
        return "it is empty"
    try:
        pc.replace_substring_regex(pa.array([""], TEXT), pattern, "")
    except pa.ArrowInvalid as error:
        return str(error).removeprefix("Invalid regular expression: ")
    return ""


def redacted(texts: pa.Array, patterns: Iterable[str | bytes]) -> pa.Array:
    """Return texts with matches replaced. Patterns given as octets match octets, as in Latin-1."""
    for each in patterns:
        texts = pc.replace_substring_regex(texts, each, REDACTED)
    return texts


def redacted_problems(problems: pa.Array, patterns: tuple[str, ...]) -> pa.Array:
    """Return problems without the values that they show, as patterns might miss a shortened value."""
    if not patterns or problems.null_count == len(problems):
        return problems
    return redacted(pc.replace_substring_regex(problems, VALUE, f" is {REDACTED}:"), patterns)


def redacted_octets(values: pa.Array, patterns: tuple[str, ...]) -> pa.Array:
    """Return redacted octets: matched as text if they are UTF-8, otherwise as text where possible and as octets."""
    if not patterns:
        return values
    try:
        return redacted(values.cast(TEXT), patterns).cast(OCTETS)
    except pa.ArrowInvalid:
        is_text = pa.array([value is None or _is_text(value) for value in values.to_pylist()])
        texts = pc.if_else(is_text, values, pa.scalar(None, OCTETS)).cast(TEXT)
        mixed = pa.array(
            [
                None if well else _mixed(value.as_py(), patterns)
                for well, value in zip(is_text.to_pylist(), values, strict=True)
            ],
            OCTETS,
        )
        return pc.if_else(is_text, redacted(texts, patterns).cast(OCTETS), mixed)


def _mixed(value: bytes, patterns: tuple[str, ...]) -> bytes:
    """Return one redacted value; one at a time, as its text may have four times its octets."""
    texts = redacted(pa.array([as_text(value)], pa.large_string()), patterns)
    octets = pa.array([as_octets(texts[0].as_py())], pa.large_binary())
    return bytes(redacted(octets, _latin(patterns))[0].as_py())


def _latin(patterns: Iterable[str]) -> list[bytes]:
    """Return the patterns that can match in Latin-1."""
    return [each.encode("latin-1") for each in patterns if max(each) <= "\xff"]


def _is_text(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def redacted_attributes(values: pa.Array, patterns: tuple[str, ...]) -> pa.Array:
    """Return attributes with each key and value redacted; invalid MessagePack is redacted as a whole."""
    if not patterns or values.null_count == len(values):
        return values
    alike = values.dictionary_encode()  # many are equal
    found = [_attributes(each) for each in alike.dictionary.to_pylist()]
    texts = [[] if each is None else each.texts for each in found]
    flat = pa.array([text for some in texts for text in some], OCTETS)
    told = iter(redacted_octets(flat, patterns).to_pylist())
    made = [
        UNREADABLE if each is None else each.replaced(islice(told, len(some)))
        for each, some in zip(found, texts, strict=True)
    ]
    return pa.array(made, OCTETS).take(alike.indices)


def _attributes(packed: bytes) -> Attributes | None:
    try:
        return Attributes(packed)
    except ValueError:
        return None


def redacted_fields(raw: pa.Array, patterns: tuple[str, ...], bodies: str) -> pa.Array:
    """Return the fields of unreadable entries with names and values redacted, and bodies as configured."""
    if raw.null_count == len(raw) or (bodies == "full" and not patterns):
        return raw
    found = [None if fields is None else _fields(fields, patterns, bodies) for fields in raw.to_pylist()]
    return pa.array(found, FIELDS)


def _fields(
    fields: list[tuple[str, bytes]], patterns: tuple[str, ...], bodies: str
) -> list[tuple[str, bytes]]:
    kept = [(name, value) for name, value in fields if bodies != "none" or name != BODY]
    names, values = [name for name, _ in kept], pa.array([value for _, value in kept], OCTETS)
    is_packed = pa.array([name == "attributes" for name in names], pa.bool_())
    packed = redacted_attributes(pc.if_else(is_packed, values, pa.scalar(None, OCTETS)), patterns)
    told = pc.if_else(is_packed, packed, redacted_octets(values, patterns)).to_pylist()
    most = None if bodies in ("none", "full") else int(bodies)
    shown = redacted(pa.array(names, TEXT), patterns).to_pylist()  # clients choose the names
    return [
        (now, value[:most] if name == BODY else value)
        for name, now, value in zip(names, shown, told, strict=True)
    ]
