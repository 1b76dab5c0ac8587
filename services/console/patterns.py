"""Patterns for bodies that somebody sends us. RE2 looks at each octet once, whatever the pattern: the standard
library's `re` can be made to look for years, and nothing else would be answered meanwhile."""

from __future__ import annotations

import re2

from services.console.problems import Problem
from services.store.letter import Pattern

LONGEST = 1000  # characters
MEMORY = 8 << 20  # octets that a compiled pattern and its search may take


def parse_pattern(text: str) -> Pattern:
    """Over octets, as `penstock dead list --match` has it; RE2 knows no look-around and no back-references.

    Raises Problem.
    """
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.log_errors = False
    options.max_mem = MEMORY
    try:
        pattern: Pattern = re2.compile(text.encode("utf-8", "surrogateescape"), options)
    except re2.error as error:
        raise _bad(_words(error)) from None
    except UnicodeEncodeError:
        raise _bad("it has half a character") from None
    return pattern


def _words(error: re2.error) -> str:
    said = error.args[0] if error.args else b""
    return said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)


def _bad(why: str) -> Problem:
    text = f"this is no regular expression of RE2: {why}"
    return Problem(400, "bad_pattern", text, [("body", why)])
