"""What makes messages and errors alike: their text without what differs from one to the next."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

from services.analytics.settings import FINGERPRINTED

# hex numbers of 8 digits and more with what hangs on them by hyphens (UUIDs), and numbers: one symbol for all, as one
# may look like the other. Possessive: nothing is tried twice.
VARIABLE = "[0-9a-fA-F]{8,}+(?:-[0-9a-fA-F]{4,}+)*+|[0-9]++"
SYMBOL = "0"
SPACE = "[ \\t\\n\\x0B\\f\\r]+"
DIGITS = 16  # of a fingerprint
PATTERN = 200  # characters of a pattern
REDACTED = "[redacted]"


def normalised(text: Column) -> Column:
    """Variable parts as one symbol, white space as one blank."""
    return F.regexp_replace(F.regexp_replace(text, VARIABLE, SYMBOL), SPACE, " ")


def fingerprint(body: Column) -> Column:
    """16 hex digits of SHA-256 of the normalised first 4096 octets; each octet is a character (Latin-1)."""
    text = F.decode(F.substring(body, 1, FINGERPRINTED), "ISO-8859-1")
    return F.substring(F.sha2(F.encode(normalised(text), "UTF-8"), 256), 1, DIGITS)


def pattern(error: Column) -> Column:
    return F.substring(normalised(error), 1, PATTERN)


def redacted(text: Column, patterns: tuple[str, ...]) -> Column:
    for each in patterns:
        text = F.regexp_replace(text, each, F.lit(REDACTED))
    return text


def redacted_octets(body: Column, patterns: tuple[str, ...]) -> Column:
    """As text if it is UTF-8, else octet by octet."""
    if not patterns:
        return body
    as_text = F.encode(redacted(F.decode(body, "UTF-8"), patterns), "UTF-8")
    as_octets = F.encode(redacted(F.decode(body, "ISO-8859-1"), patterns), "ISO-8859-1")
    return F.when(F.is_valid_utf8(body.cast("string")), as_text).otherwise(as_octets)
