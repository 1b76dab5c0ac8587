"""Draw the chart: one panel for each operation and shape, one bar for each peer."""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("agg")
from matplotlib import pyplot
from matplotlib.axes import Axes

from benchmarks.report import CELLS, EDGES
from benchmarks.results import PeerResult, Results

OUR_COLOUR, THEIR_COLOUR = "#c2410c", "#94a3b8"
NOT_SHOWN = ("ceiling",)  # far beyond the scale
DPI = 110


def draw(results: Results, path: Path) -> bool:
    """Write the PNG; False if there is nothing to draw."""
    peers = [peer for peer in results.peers if peer.cells and peer.name not in NOT_SHOWN]
    if not peers:
        return False
    figure, panels = pyplot.subplots(2, 2, figsize=(13, 0.8 + 0.8 * len(peers)), layout="constrained")
    for axes, cell in zip(panels.flat, CELLS, strict=True):
        _panel(axes, cell, [peer for peer in peers if cell in peer.cells])
    figure.suptitle(
        f"100-byte messages, thousand a second, {results.machine.cores} cores, {results.date[:10]}"
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=DPI)
    pyplot.close(figure)
    return True


def _panel(axes: Axes, cell: str, peers: list[PeerResult]) -> None:
    rates = [peer.cells[cell].rate / 1000 for peer in peers]
    colours = [OUR_COLOUR if peer.name in EDGES else THEIR_COLOUR for peer in peers]
    bars = axes.barh([peer.title for peer in peers], rates, color=colours)
    axes.bar_label(bars, fmt="{:,.0f}", padding=3, fontsize=8)
    axes.invert_yaxis()
    axes.margins(x=0.12)
    axes.set_title(f"{cell} in flight", fontsize=10)
    axes.tick_params(labelsize=8)
    axes.spines[["top", "right"]].set_visible(False)
