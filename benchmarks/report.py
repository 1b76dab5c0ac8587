"""Report the results: a table on the terminal, and the same in Markdown for docs/benchmarks.md."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.measures.throughput import cell_name
from benchmarks.peers.peer import SHAPES, Operation
from benchmarks.results import Finding, PeerResult, Results, median, ratios

BEGIN, END = "<!-- benchmarks:begin -->", "<!-- benchmarks:end -->"
CELLS = [cell_name(operation, shape) for shape in SHAPES for operation in Operation]
OURS, CEILING, OWN_GENERATOR = "tmq", "ceiling", "redis-benchmark"
EDGES = (OURS, "text", "ring")  # of Penstock: not compared with each other
NEAR, DAGGER = 0.7, "†"
NUMBERS_TITLE = (
    "thousand messages of 100 bytes a second (in parentheses: Penstock TMQ is so many times as fast)"
)
PROMISES_TITLE = "what an acknowledgement guarantees"
FINDINGS_TITLE, FINDINGS_HEADER = "goals and other measurements", ("", "median", "goal", "verdict")
COLOURS = {"met": "green", "missed": "red", "not run": "yellow"}
SMALL, DIGITS = 100, 3  # below SMALL a number is shown with so many digits


def format_number(value: float) -> str:
    """Format with about three digits: 1.62, 38.1, 412, 5,016."""
    if value >= SMALL:
        return f"{value:,.0f}"
    return f"{value:.{DIGITS}g}"


def format_quotient(value: float) -> str:
    """Format with about three digits, and more if these would round up to a whole number: 1.998, not 2."""
    if value >= SMALL:
        return format_number(value)
    digits = DIGITS
    while value < (shown := float(f"{value:.{digits}g}")) and shown.is_integer():
        digits += 1
    return f"{value:.{digits}g}"


def format_cell(results: Results, peer: PeerResult, cell: str) -> str:
    """Return thousands of messages a second, and Penstock's rate in relation to it."""
    if cell not in peer.cells:
        return "-"
    mine, ours = peer.cells[cell], results.peer(OURS)
    shown = format_number(mine.rate / 1000) + DAGGER * is_near_ceiling(results, peer, cell)
    quotients = ratios(ours.cells.get(cell), mine) if ours and peer.name not in (*EDGES, CEILING) else []
    return f"{shown} ({format_quotient(median(quotients))} x)" if quotients else shown


def is_near_ceiling(results: Results, peer: PeerResult, cell: str) -> bool:
    """Return True if the generator rather than the peer may limit the rate."""
    ceiling = results.peer(CEILING)
    if ceiling is None or cell not in ceiling.cells or peer.name in (CEILING, OWN_GENERATOR):
        return False
    return peer.cells[cell].rate > NEAR * ceiling.cells[cell].rate


def title(peer: PeerResult) -> str:
    return f"{peer.title} {peer.version}".strip()


def peer_rows(results: Results) -> Iterator[list[str]]:
    """Yield title with version, and one cell for each operation and shape."""
    for peer in results.peers:
        if not peer.not_run:
            yield [title(peer), *(format_cell(results, peer, cell) for cell in CELLS)]


def promise_rows(results: Results) -> Iterator[list[str]]:
    """Yield each peer's title with what its acknowledgement guarantees, or why it did not run."""
    for peer in results.peers:
        if peer.name != CEILING:
            yield [peer.title, f"not run: {peer.not_run}" if peer.not_run else peer.promise]


def finding_row(finding: Finding) -> list[str]:
    """Return a finding's name, value, target, and verdict or note."""
    value = f"{format_value(finding)} {finding.unit}" if finding.values else "not run"
    wanted = str(finding.target) if finding.target else ""
    return [finding.what, value, wanted, " ".join(filter(None, (_verdict(finding), finding.note)))]


def format_value(finding: Finding) -> str:
    """Return the value with as many digits as it takes to be on its own side of the goal: 1.998, not 2, of 2."""
    shown = format_number(finding.value)
    digits = DIGITS
    while finding.target and finding.target.is_met(float(shown.replace(",", ""))) != finding.target.is_met(
        finding.value
    ):
        digits += 1
        shown = f"{finding.value:,.{digits}g}"
    return shown


def _verdict(finding: Finding) -> str:
    return "" if finding.verdict == "not run" else finding.verdict


def caption(results: Results) -> str:
    kind = (
        "quick run, not to be quoted" if results.quick else f"medians of {results.rounds} interleaved rounds"
    )
    busy = f", busy at most {results.generator_busy:.0%} of one" if results.generator_busy else ""
    near = any(is_near_ceiling(results, peer, cell) for peer in results.peers for cell in peer.cells)
    return (
        f"{results.date[:10]}, {kind}; {results.machine}. Generator: {results.generator}, a process of its own on the "
        f"same cores{busy}. Commit {results.commit or 'unknown'}."
        + (
            f" {DAGGER} more than {NEAR:.0%} of the generator's own ceiling: the peer may do more."
            if near
            else ""
        )
    )


def print_results(results: Results, console: Console) -> None:
    if results.peers:
        console.print(_table(NUMBERS_TITLE, ("", *CELLS), peer_rows(results)))
        console.print(_table(PROMISES_TITLE, ("", "promise"), promise_rows(results), right=()))
    if results.findings:
        console.print(_findings_table(results.findings))
    console.print(caption(results), style="dim")


def _table(
    name: str, header: Sequence[str], rows: Iterable[list[str]], right: Sequence[str] = CELLS
) -> Table:
    table = Table(title=name)
    for column in header:
        table.add_column(column, justify="right" if column in right else "left")
    for row in rows:
        table.add_row(*row)
    return table


def _findings_table(findings: Sequence[Finding]) -> Table:
    table = _table(FINDINGS_TITLE, FINDINGS_HEADER, (), right=FINDINGS_HEADER[1:3])
    for finding in findings:
        table.add_row(*finding_row(finding), style=COLOURS.get(finding.verdict))
    return table


def markdown(results: Results, chart: str | None) -> str:
    """Return the report as Markdown: the numbers, the chart, the guarantees, the targets, the caption."""
    promises = "\n".join(f"- **{who}**: {what}" for who, what in promise_rows(results))
    parts = [
        f"{_capital(NUMBERS_TITLE)}:",
        markdown_table(["", *CELLS], peer_rows(results)),
        f"![Messages a second, side by side]({chart})" if chart else "",
        f"{_capital(PROMISES_TITLE)}:",
        promises,
        markdown_table(FINDINGS_HEADER, map(finding_row, results.findings)),
        caption(results),
    ]
    return "\n\n".join(filter(None, parts))


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def markdown_table(header: Sequence[str], rows: Iterable[list[str]]) -> str:
    rule = ["---", *["---:"] * (len(header) - 1)]
    lines = [header, rule, *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def write_between_markers(path: Path, text: str, begin: str = BEGIN, end: str = END) -> None:
    """Replace the text between the markers. Raises ValueError if they are missing."""
    before, found_begin, rest = path.read_text().partition(begin)
    _, found_end, after = rest.partition(end)
    if not found_begin or not found_end:
        raise ValueError(f"{path} needs a line {begin} and a line {end}, in this order")
    path.write_text(f"{before}{begin}\n{text}\n{end}{after}")
