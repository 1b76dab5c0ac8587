"""Write the table of values in the chart's README.md from values.yaml: python -m tools.chart_docs CHART

A comment that begins with `# --` documents the value below it and the values nested in that, unless they have comments
of their own. The reader supports only the YAML that values.yaml uses: two spaces for each level.
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
    """Yield the documented values in their order."""
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
    """Return the lines nested below a key, joined into one."""
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
    """Return README.md with the table below its mark."""
    written, mark, _ = (chart / "README.md").read_text("utf-8").partition(MARK)
    return f"{written}{mark or MARK}\n{table((chart / 'values.yaml').read_text('utf-8'))}"


def main(words: list[str]) -> None:
    chart = Path(words[0])
    (chart / "README.md").write_text(page(chart), "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
