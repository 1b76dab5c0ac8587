"""Find words that do not belong in technical text: python -m tools.plain_words FILE [FILE ...]

These words treat programs as persons ("whoever reads") or negate a person ("nobody waits"). Code is not checked.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

WORDS = re.compile(
    r"\b(whoever|whomever|somebody|nobody|anybody|nowhere|wherever|someone else's|he|his|him|himself"
    r"|none that|(?<!there )(is|are) none|for good|tells? of|is let in|(is|are|was|were) told)\b",
    re.I,
)
FENCE = re.compile(r"^ *(```+|~~~+)")
CODE = re.compile(r"`[^`]*`")


def hits(lines: Iterable[str]) -> Iterator[tuple[int, str]]:
    """Yield the number of each line outside of code that has such a word, and the word."""
    fence = ""
    for number, line in enumerate(lines, 1):
        if found := FENCE.match(line):
            fence = "" if fence == found[1] else fence or found[1]
        elif not fence:
            yield from ((number, word[0]) for word in WORDS.finditer(CODE.sub("", line)))


def main(names: Iterable[str]) -> int:
    """Print each hit with its place, and return the exit status."""
    found = [
        f"{name}:{number}: {word}"
        for name in names
        for number, word in hits(Path(name).read_text().splitlines())
    ]
    print(*found, sep="\n", end="\n" if found else "")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
