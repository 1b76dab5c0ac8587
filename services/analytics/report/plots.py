"""The report's plots, SVG inside of its page and in its colours: the same figures give the same octets.

They have numbers and words of ours alone; what others wrote stands in the page, where it is escaped.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from html import escape
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from services.analytics.report.words import count
from services.kit.words import seconds
from services.store.report import HourFigures, Quantiles

# Colours that stand for the page's own, which differ by day and night.
COLOURS = {
    "--ink": "#010203",
    "--soft": "#010204",
    "--line": "#010205",
    "--in": "#010206",
    "--out": "#010207",
    "--refused": "#010208",
    "--dead": "#010209",
}
INK, SOFT, LINE, IN, OUT, REFUSED, DEAD = COLOURS.values()
STYLE: dict[Any, Any] = {
    "svg.hashsalt": "penstock",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 9,
    **dict.fromkeys(("text.color", "axes.labelcolor"), INK),
    **dict.fromkeys(("xtick.color", "ytick.color"), SOFT),
    "axes.edgecolor": LINE,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.ymargin": 0.12,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "grid.color": LINE,
    "grid.linewidth": 0.6,
}
SIZE = (5.0, 2.3)  # inches
NOT_OURS = ("Date", "Creator", "Format", "Type")  # of the file's metadata
LABELS = 6  # below an axis
REFERENCE = re.compile(r'(\bid="|url\(#|href="#)')
DAY_HOURS = 48  # a longer span has days below its axis


def traffic(hours: Sequence[HourFigures], span: Sequence[str]) -> str:
    def draw(axes: Axes) -> None:
        at = [span.index(each.hour) for each in hours]
        axes.plot(at, [each.in_ for each in hours], color=IN, marker="o", markersize=3)
        axes.plot(at, [each.out for each in hours], color=OUT, marker="s", markersize=3, linestyle="--")
        _label_hours(axes, span)

    return _svg("traffic", "Messages put in and given out in each hour", draw)


def trouble(hours: Sequence[HourFigures], span: Sequence[str]) -> str:
    def draw(axes: Axes) -> None:
        at = [span.index(each.hour) for each in hours]
        left, right = [place - 0.2 for place in at], [place + 0.2 for place in at]
        axes.bar(
            left, [each.refused for each in hours], 0.36, facecolor="none", edgecolor=REFUSED, linewidth=1.2
        )
        axes.bar(right, [each.dead for each in hours], 0.36, color=DEAD)
        _label_hours(axes, span)

    return _svg("trouble", "Refusals and dead letters in each hour", draw)


def histogram(
    name: str, title: str, times: Quantiles, bounds: Sequence[float], *, of_deaths: bool = False
) -> str:
    """Counts by the upper bound of their bucket."""

    def draw(axes: Axes) -> None:
        places = range(len(times.counts))
        axes.bar(places, times.counts, 0.8, color=DEAD if of_deaths else IN)
        labels = [*(seconds(bound) for bound in bounds), "more"]
        shown = [*range(0, len(bounds), 3), len(bounds)]
        axes.set_xticks(shown, [labels[place] for place in shown])

    return _svg(name, title, draw)


def _label_hours(axes: Axes, span: Sequence[str]) -> None:
    axes.set_xlim(-0.7, len(span) - 0.3)
    if len(span) > DAY_HOURS:
        places = [place for place, hour in enumerate(span) if hour.endswith("T00")]
        labels = [span[place][5:10] for place in places]
    else:
        step = -(-len(span) // LABELS)
        places = list(range(len(span) - 1, -1, -step))
        labels = [f"{span[place][11:]}:00" for place in places]
    axes.set_xticks(places, labels)


def _svg(name: str, title: str, draw: Callable[[Axes], None]) -> str:
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(STYLE)
        figure = Figure(figsize=SIZE, layout="constrained")
        axes = figure.add_subplot()
        figure.patch.set_alpha(0)
        axes.patch.set_alpha(0)
        axes.yaxis.set_major_locator(MaxNLocator(4, integer=True))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: count(value)))
        draw(axes)
        axes.set_ylim(bottom=0)
        sink = io.StringIO()
        figure.savefig(sink, format="svg", metadata=dict.fromkeys(NOT_OURS))
    return _inline(sink.getvalue(), name, title)


def _inline(text: str, name: str, title: str) -> str:
    """As a part of a page: no prologue, names of its own, as wide as there is room, and a name for who hears it."""
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.S)
    head, body = text.split(">", 1)
    head = re.sub(r' (width|height)="[^"]*"', "", head)
    body = REFERENCE.sub(rf"\g<1>{name}-", body)
    for variable, colour in COLOURS.items():
        body = body.replace(colour, f"var({variable})")
    return f'{head} role="img" aria-label="{escape(title)}">{body}'
