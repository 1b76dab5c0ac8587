"""Compile RE2 patterns on bodies, with limits.

RE2 reads each octet once, whereas the standard library's `re` can take exponential time. But an octet's cost grows with
the compiled pattern, and a short text can compile to a large pattern: `.{0,999}` has 3,000 steps. So its size is
limited, and searches run in threads of their own (services/store/deadletters).
"""

from __future__ import annotations

import re

import re2

from services.console.contract.problems import Problem
from services.store.model import Pattern

LONGEST = 1000  # characters
# of the compiled pattern: a few words, a number and a date take 100; 1 MiB takes up to 4 s with 500
MAX_STEPS = 500
MAX_REPEATS = 500  # in braces, in total: RE2 expands them as it compiles, which blocks the process
REPEAT = re.compile(r"\{(?:[0-9]*,)?([0-9]+),?\}")
MEMORY = 1 << 20  # octets, of a compiled pattern and its search


def parse_pattern(text: str) -> Pattern:
    """Compile a pattern over octets, without look-around and back-references. Raises Problem 400."""
    if sum(map(int, REPEAT.findall(text))) > MAX_REPEATS:
        raise _bad(f"the counts in braces add up to more than {MAX_REPEATS}")
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.log_errors = False
    options.never_capture = True  # only whether it matches
    options.max_mem = MEMORY
    re2.purge()  # RE2 caches the last 128, with their memory
    try:
        pattern = re2.compile(text.encode("utf-8", "surrogateescape"), options)
    except re2.error as error:
        raise _bad(_message(error)) from None
    except UnicodeEncodeError:
        raise _bad("unpaired surrogate") from None
    if pattern.programsize > MAX_STEPS:
        raise _bad(f"it has {pattern.programsize} steps, at most {MAX_STEPS} are allowed: simplify it")
    found: Pattern = pattern
    return found


def _message(error: re2.error) -> str:
    text = error.args[0] if error.args else b""
    return text.decode("utf-8", "replace") if isinstance(text, bytes) else str(text)


def _bad(why: str) -> Problem:
    text = f"unsupported regular expression: {why}"
    return Problem(400, "bad_pattern", text, [("body", why)])
