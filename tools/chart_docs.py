"""The table of values in the chart's README.md, made of the comments in values.yaml: python -m tools.chart_docs CHART

A comment that begins with `# --` says what the value below it means; whatever is nested in that value belongs to it,
unless it has comments of its own. Only so much YAML is understood as our values.yaml has: two spaces a depth.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

MARK = "<!-- what follows is written by `make chart-docs` -->\n"
COMMENT = "# -- "
KEY = re.compile(r"^( *)([A-Za-z0-9-]+):(?: (.*))?$")
LONGEST = 100  # characters of a default


@dataclass(frozen=True)
class Value:
    path: str
    default: str
    meaning: str


def values(text: str) -> Iterator[Value]:
    """Those with a comment, in order."""
    lines = text.splitlines()
    path: list[str] = []
    meaning = ""
    for number, line in enumerate(lines):
        if line.strip().startswith(COMMENT):
            meaning = line.strip().removeprefix(COMMENT)
        elif found := KEY.match(line):
            indent, name, value = found.groups()
            path[len(indent) // 2 :] = [name]
            if meaning:
                yield Value(".".join(path), value or _nested(lines, number, len(indent)), meaning)
            meaning = ""


def _nested(lines: list[str], number: int, indent: int) -> str:
    """What stands below a key, on one line."""
    found = []
    for line in lines[number + 1 :]:
        if line.strip() and len(line) - len(line.lstrip()) <= indent:
            break
        found.append(line.strip())
    return " ".join(found)


def table(text: str) -> str:
    rows = ["| value | default | meaning |", "|---|---|---|"]
    for value in values(text):
        default = value.default if len(value.default) <= LONGEST else "see values.yaml"
        rows.append(f"| `{value.path}` | `{_cell(default)}` | {_cell(value.meaning)} |")
    return "\n".join(rows) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def page(chart: Path) -> str:
    """README.md as it should be: what people wrote, the mark, the table."""
    written, mark, _ = (chart / "README.md").read_text("utf-8").partition(MARK)
    return f"{written}{mark or MARK}\n{table((chart / 'values.yaml').read_text('utf-8'))}"


def main(words: list[str]) -> None:
    chart = Path(words[0])
    (chart / "README.md").write_text(page(chart), "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
