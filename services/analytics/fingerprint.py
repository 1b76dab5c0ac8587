"""What makes messages and errors alike: their text without what differs from one to the next."""

from __future__ import annotations

import hashlib

import pyarrow as pa
import pyarrow.compute as pc

from services.analytics.schema import TEXT
from services.analytics.settings import FINGERPRINTED

# hex numbers of 8 digits and more with what hangs on them by hyphens (UUIDs), and numbers: one symbol for all, as one
# may look like the other
VARIABLE = "[0-9a-fA-F]{8,}(?:-[0-9a-fA-F]{4,})*|[0-9]+"
SYMBOL = "0"
SPACE = r"[ \t\n\v\f\r]+"
DIGITS = 16  # of a fingerprint
PATTERN = 200  # characters of a pattern


def normalised(values: pa.Array) -> pa.Array:
    """Variable parts as one symbol, white space as one blank. Of octets each is a character (Latin-1)."""
    return pc.replace_substring_regex(pc.replace_substring_regex(values, VARIABLE, SYMBOL), SPACE, " ")


def fingerprints(bodies: pa.Array) -> pa.Array:
    """16 hex digits of SHA-256 of the normalised first FINGERPRINTED octets; what is alike is hashed once."""
    alike = normalised(pc.binary_slice(bodies, 0, FINGERPRINTED)).dictionary_encode()
    hashes = pa.array([_fingerprint(text) for text in alike.dictionary.to_pylist()], TEXT)
    return hashes.take(alike.indices)


def _fingerprint(text: bytes) -> str:
    return hashlib.sha256(text.decode("latin-1").encode()).hexdigest()[:DIGITS]


def patterns(errors: pa.Array) -> pa.Array:
    return pc.utf8_slice_codeunits(normalised(errors), 0, PATTERN)
