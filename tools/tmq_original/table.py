"""The table of docs/tmq.md: the answers of both servers to each call, and reasons for differences."""

from __future__ import annotations

from collections.abc import Sequence

from tools.tmq_original.calls import Call

BEGIN = "<!-- written by tools.tmq_original -->\n"
END = "<!-- end of what tools.tmq_original writes -->"


def table(calls: Sequence[Call], original: Sequence[str], ours: Sequence[str]) -> str:
    """Return the Markdown table, and a line with the number of different answers."""
    different = sum(one != other for one, other in zip(original, ours, strict=True))
    lines = [f"{len(calls)} calls compared; {different} are answered differently.", ""]
    lines += ["| call | original server | Penstock | why they differ |", "|---|---|---|---|"]
    for call, theirs, mine in zip(calls, original, ours, strict=True):
        why = "" if theirs == mine else call.why or "**unexplained**"
        lines.append(f"| `{call.steps}` | {theirs} | {mine} | {why} |".replace("  |", " |"))
    return "\n".join(lines)


def parsed(text: str) -> dict[str, tuple[str, str]]:
    """Return the answers of both servers by call, from the table in a page."""
    rows = [line.split(" | ") for line in _written(text).splitlines() if line.startswith("| `")]
    return {row[0].strip("|` "): (row[1], row[2].removesuffix(" |")) for row in rows}


def replaced(text: str, written: str) -> str:
    """Return the page with another table. Raises ValueError if it has no marks."""
    before, _, rest = text.partition(BEGIN)
    _, mark, after = rest.partition(END)
    if not mark:
        raise ValueError(f"the page has no {BEGIN.strip()} ... {END}")
    return f"{before}{BEGIN}\n{written}\n\n{END}{after}"


def _written(text: str) -> str:
    return text.partition(BEGIN)[2].partition(END)[0]
