"""Fingerprint messages and errors: similar ones differ only in variable parts of their text."""

from __future__ import annotations

import hashlib

import pyarrow as pa
import pyarrow.compute as pc

from services.redis_stream.schema import TEXT

# Hex numbers of at least 8 digits, also joined by hyphens (UUIDs), and decimal numbers. One symbol for all, as some
# hex numbers look like decimal ones.
VARIABLE = "[0-9a-fA-F]{8,}(?:-[0-9a-fA-F]{4,})*|[0-9]+"
SYMBOL = "0"
SPACE = r"[ \t\n\v\f\r]+"
DIGITS = 16  # of a fingerprint
FINGERPRINTED = 4096  # octets of a body that its fingerprint covers
PATTERN = 200  # characters of a pattern


def normalised(values: pa.Array) -> pa.Array:
    """Replace variable parts by one symbol and white space by one blank. Octets are matched as Latin-1."""
    return pc.replace_substring_regex(pc.replace_substring_regex(values, VARIABLE, SYMBOL), SPACE, " ")


def fingerprints(bodies: pa.Array) -> pa.Array:
    """Return 16 hex digits of SHA-256 of the first FINGERPRINTED octets, normalised; equal bodies are hashed once."""
    alike = normalised(pc.binary_slice(bodies, 0, FINGERPRINTED)).dictionary_encode()
    hashes = pa.array([_fingerprint(text) for text in alike.dictionary.to_pylist()], TEXT)
    return hashes.take(alike.indices)


def _fingerprint(text: bytes) -> str:
    return hashlib.sha256(text.decode("latin-1").encode()).hexdigest()[:DIGITS]


def patterns(errors: pa.Array) -> pa.Array:
    """Return normalised errors, at most PATTERN characters each."""
    return pc.utf8_slice_codeunits(normalised(errors), 0, PATTERN)
