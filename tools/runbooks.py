"""Update the generated parts of runbooks: python -m tools.runbooks RULES FOLDER.

These are the alert's expression, severity and duration, and the table in the index. The rest is written by hand.
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

MARK = "<!-- what follows is written by `make runbooks` -->\n"
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.M | re.S)
WHEN = re.compile(r"everity `\w+`, (at once|after \w+)")
IMPACT = re.compile(r"^\*\*Impact\.\*\* (.*?)\n\n", re.M | re.S)
WIDTH = 120
OWN_CLAIM = 'persistentvolumeclaim="<claim of the chart\'s store>"'
ANY_EDGE = 'edge="<each edge of the release>"'


@dataclass(frozen=True, slots=True)
class Alert:
    """An alert of the rules."""

    name: str
    severity: str
    when: str
    expr: str  # for all releases
    meaning: str

    @classmethod
    def of(cls, rule: dict[str, Any]) -> Alert:
        """Read a rule."""
        expr = (
            re.sub(r'namespace!="",?', "", rule["expr"])
            .replace('persistentvolumeclaim!=""', OWN_CLAIM)
            .replace("{}", "")
            .replace('edge!=""', ANY_EDGE)
        )
        when = "at once" if rule["for"] == "0m" else f"after {rule['for']}"
        meaning = rule["annotations"]["description"]
        return cls(rule["alert"], rule["labels"]["severity"], when, " ".join(expr.split()), meaning)


def alerts(text: str) -> Iterator[Alert]:
    """Yield the alerts of a file of rules in order."""
    for group in yaml.safe_load(text)["groups"]:
        yield from map(Alert.of, group["rules"])


def page(alert: Alert, text: str) -> str:
    """Return the updated runbook. Raises ValueError if it lacks a part to update."""
    if not WHEN.search(text) or not any(kind == "" for kind, _ in FENCE.findall(text)):
        raise ValueError(f"{alert.name}: the page lacks the severity, or a block for the expression")
    block = f"```\n{textwrap.fill(alert.expr, WIDTH, break_long_words=False, break_on_hyphens=False)}\n```"
    text = WHEN.sub(f"everity `{alert.severity}`, {alert.when}", text, count=1)
    first = next(found for found in FENCE.finditer(text) if found[1] == "")
    return text[: first.start()] + block + text[first.end() :]


def impact(text: str) -> str:
    """Return the impact and urgency from a runbook."""
    found = IMPACT.search(text)
    return " ".join(found[1].split()) if found else ""


def index(text: str, rows: list[tuple[Alert, str]]) -> str:
    """Return the updated index. rows: alerts with their impact."""
    written, _, _ = text.partition(MARK)
    lines = ["| alert | severity | impact | meaning |", "|---|---|---|---|"]
    for alert, impact_text in rows:
        cells = (
            f"[{alert.name}]({alert.name}.md)",
            f"{alert.severity}, {alert.when}",
            impact_text,
            alert.meaning,
        )
        lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    return written + MARK + "\n" + "\n".join(lines) + "\n"


def pages(rules: Path, folder: Path) -> Iterator[tuple[Path, str]]:
    """Yield every page of the folder with its updated text."""
    rows = []
    for alert in alerts(rules.read_text("utf-8")):
        file = folder / f"{alert.name}.md"
        text = page(alert, file.read_text("utf-8"))
        rows.append((alert, impact(text)))
        yield file, text
    yield folder / "index.md", index((folder / "index.md").read_text("utf-8"), rows)


if __name__ == "__main__":
    for at, should in pages(Path(sys.argv[1]), Path(sys.argv[2])):
        at.write_text(should, "utf-8")
