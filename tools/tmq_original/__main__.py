"""python -m tools.tmq_original ORIGINAL OURS [FILE]: print the table, or write it into FILE at its mark."""

from __future__ import annotations

import sys
from pathlib import Path

from tools.tmq_original.calls import CALLS
from tools.tmq_original.conversation import Address, answers
from tools.tmq_original.table import replaced, table


def address(text: str) -> Address:
    host, _, port = text.rpartition(":")
    return host, int(port)


def main(original: str, ours: str, *files: str) -> None:
    written = table(CALLS, answers(address(original), CALLS), answers(address(ours), CALLS))
    for path in map(Path, files):
        path.write_text(replaced(path.read_text(), written))
    if not files:
        print(written)


if __name__ == "__main__":
    main(*sys.argv[1:])
