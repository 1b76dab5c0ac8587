"""Patterns for bodies that somebody sends us. RE2 looks at each octet once, whatever the pattern: the standard
library's `re` can be made to look for years. But each octet may cost as much as the pattern is large once compiled, and
a short text can be a large pattern: `.{0,999}` is 3,000 steps. So that is bounded, too, and searches have threads of
their own (services/store/deadletters/searching.py).
"""

from __future__ import annotations

import re

import re2

from services.console.contract.problems import Problem
from services.store.model import Pattern

LONGEST = 1000  # characters
MOST_STEPS = (
    500  # of it, compiled: one with a few words, a number and a date has 100. Of such, a MiB took 4 s at most
)
MOST_REPEATS = 500  # in braces, all together: RE2 writes each out as it compiles, and all else waits for that
REPEAT = re.compile(r"\{(?:[0-9]*,)?([0-9]+),?\}")
MEMORY = 1 << 20  # octets that a compiled pattern and its search may take


def parse_pattern(text: str) -> Pattern:
    """Over octets, as `penstock dead list --match` has it; RE2 knows no look-around and no back-references.

    Raises Problem.
    """
    if sum(map(int, REPEAT.findall(text))) > MOST_REPEATS:
        raise _bad(f"it repeats more than {MOST_REPEATS} times, all counts in braces together")
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.log_errors = False
    options.never_capture = True  # it is only asked whether it fits
    options.max_mem = MEMORY
    re2.purge()  # it keeps the last 128, with what their searches took
    try:
        pattern = re2.compile(text.encode("utf-8", "surrogateescape"), options)
    except re2.error as error:
        raise _bad(_words(error)) from None
    except UnicodeEncodeError:
        raise _bad("it has half a character") from None
    if pattern.programsize > MOST_STEPS:
        raise _bad(f"it has {pattern.programsize} steps where {MOST_STEPS} may be: make it simpler")
    found: Pattern = pattern
    return found


def _words(error: re2.error) -> str:
    said = error.args[0] if error.args else b""
    return said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)


def _bad(why: str) -> Problem:
    text = f"this is no regular expression that is tried here: {why}"
    return Problem(400, "bad_pattern", text, [("body", why)])
