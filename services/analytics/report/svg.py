"""Draw plots as inline SVG in the page's colours; the same figures give the same octets."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from services.analytics.report.words import count

# Placeholders of the page's colours, which differ in light and dark mode.
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
NOT_OURS = ("Date", "Creator", "Format", "Type")  # metadata that is left out
REFERENCE = re.compile(r'(\bid="|url\(#|href="#)')


@dataclass(frozen=True, slots=True)
class Form:
    """A size of plots for a range of window widths, as texts in a plot scale with it."""

    name: str  # also its CSS class
    inches: tuple[float, float]
    labels: int  # labels on an axis of hours


FORMS = (Form("wide", (5.0, 2.3), 6), Form("narrow", (3.3, 2.1), 4))


@dataclass(frozen=True, slots=True)
class Plot:
    """A plot; its texts are our own words and numbers, as those of clients must be escaped."""

    name: str
    title: str
    draw: Callable[[Axes, Form], None]

    def svg(self) -> str:
        """Return the plot in all forms."""
        return "\n".join(self._inline(self._drawn(form), form) for form in FORMS)

    def _drawn(self, form: Form) -> str:
        with mpl.rc_context():
            mpl.rcdefaults()
            mpl.rcParams.update(STYLE)
            figure = Figure(figsize=form.inches, layout="constrained")
            axes = figure.add_subplot()
            figure.patch.set_alpha(0)
            axes.patch.set_alpha(0)
            axes.yaxis.set_major_locator(MaxNLocator(4, integer=True))
            axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: count(value)))
            self.draw(axes, form)
            axes.set_ylim(bottom=0)
            sink = io.StringIO()
            figure.savefig(sink, format="svg", metadata=dict.fromkeys(NOT_OURS))
        return sink.getvalue()

    def _inline(self, text: str, form: Form) -> str:
        """Return the SVG for a page: no prologue, unique ids, as wide as its container, labelled for screen readers."""
        text = re.sub(r"<metadata>.*?</metadata>", "", text[text.index("<svg") :], flags=re.S)
        head, body = text.split(">", 1)
        head = re.sub(r' (width|height)="[^"]*"', "", head)
        body = REFERENCE.sub(rf"\g<1>{self.name}-{form.name}-", body)
        for variable, colour in COLOURS.items():
            body = body.replace(colour, f"var({variable})")
        return f'{head} class="{form.name}" role="img" aria-label="{escape(self.title)}">{body}'
