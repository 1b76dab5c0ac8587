"""Draw the report's plots as inline SVG in the page's colours; the same figures give the same octets.

They contain only numbers and our own words; texts of clients are in the page, where they are escaped.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from math import nan
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from services.analytics.report.words import count
from services.kit.formatting import format_duration
from services.store.report import HourFigures, Quantiles

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
DAY_HOURS = 48  # a longer span has days on its axis and outlines instead of bars, which would be a pixel wide
LINE_WIDTH = 1.2


@dataclass(frozen=True, slots=True)
class Form:
    """A size of plots for a range of window widths, as texts in a plot scale with it."""

    name: str  # also its CSS class
    inches: tuple[float, float]
    labels: int  # labels on an axis of hours


FORMS = (Form("wide", (5.0, 2.3), 6), Form("narrow", (3.3, 2.1), 4))


@dataclass(frozen=True, slots=True)
class Time:
    """The time axis of a plot."""

    span: Sequence[str]  # hours
    is_running: bool = False  # the last hour is incomplete

    @property
    def is_long(self) -> bool:
        """Return whether the span has days on its axis and outlines instead of bars."""
        return len(self.span) > DAY_HOURS

    def edges(self) -> list[float]:
        """Return the edges of all hours on the axis."""
        return [at - 0.5 for at in range(len(self.span) + 1)]

    def placed(self, values: dict[str, int]) -> list[float]:
        """Return the values of all hours; NaN for unknown ones."""
        return [values.get(each, nan) for each in self.span]


def traffic(form: Form, hours: Sequence[HourFigures], time: Time) -> str:
    """Return a plot of messages published and delivered."""
    put, given = {each.hour: each.in_ for each in hours}, {each.hour: each.out for each in hours}

    def draw(axes: Axes) -> None:
        if time.is_long:
            _steps(axes, time, put, color=IN, linewidth=LINE_WIDTH)
            _steps(axes, time, given, color=OUT, linewidth=LINE_WIDTH, linestyle="--")
        else:
            at = [time.span.index(hour) for hour in put]
            axes.plot(at, [*put.values()], color=IN, marker="o", markersize=3)
            axes.plot(at, [*given.values()], color=OUT, marker="s", markersize=3, linestyle="--")
        _label_hours(axes, time, form)

    return _svg(form, "traffic", "Messages published and delivered per hour", draw)


def trouble(form: Form, hours: Sequence[HourFigures], time: Time) -> str:
    """Return a plot of refusals and dead letters."""
    refused, dead = {each.hour: each.refused for each in hours}, {each.hour: each.dead for each in hours}
    outline: dict[str, Any] = {"facecolor": "none", "edgecolor": REFUSED, "linewidth": LINE_WIDTH}

    def draw(axes: Axes) -> None:
        if time.is_long:
            _steps(axes, time, dead, color=DEAD, fill=True)
            _steps(axes, time, refused, color=REFUSED, linewidth=LINE_WIDTH)
        else:
            at = [time.span.index(hour) for hour in dead]
            axes.bar([place - 0.2 for place in at], [*refused.values()], 0.36, **outline)
            axes.bar([place + 0.2 for place in at], [*dead.values()], 0.36, color=DEAD)
        _label_hours(axes, time, form)

    return _svg(form, "trouble", "Refusals and dead letters per hour", draw)


def _steps(axes: Axes, time: Time, values: dict[str, int], **look: Any) -> None:
    """Draw one outline over all hours instead of one shape each."""
    axes.stairs(time.placed(values), time.edges(), **look)


def histogram(
    form: Form, name: str, title: str, times: Quantiles, bounds: Sequence[float], *, of_deaths: bool = False
) -> str:
    """Return a plot of counts by the upper bound of their bucket."""

    def draw(axes: Axes) -> None:
        places = range(len(times.counts))
        axes.bar(places, times.counts, 0.8, color=DEAD if of_deaths else IN)
        labels = [*(format_duration(bound) for bound in bounds), "more"]
        shown = [*range(0, len(bounds), 3), len(bounds)]
        axes.set_xticks(shown, [labels[place] for place in shown])

    return _svg(form, name, title, draw)


def _label_hours(axes: Axes, time: Time, form: Form) -> None:
    """Label hours, or days of a long span; an incomplete last hour is `now` and has a background."""
    span, last = time.span, len(time.span) - 1
    axes.set_xlim(-0.7, last + 0.7)
    if time.is_long:
        labels = {place: hour[5:10] for place, hour in enumerate(span) if hour.endswith("T00")}
    else:
        step = -(-len(span) // form.labels)
        labels = {place: f"{span[place][11:]}:00" for place in range(last, -1, -step)}
    if time.is_running:
        axes.axvspan(last - 0.5, last + 0.5, color=LINE, linewidth=0, zorder=0)
        room = len(span) / (2 * form.labels)
        labels = {**{place: text for place, text in labels.items() if place < last - room}, last: "now"}
    axes.set_xticks([*labels], [*labels.values()])


def _svg(form: Form, name: str, title: str, draw: Callable[[Axes], None]) -> str:
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(STYLE)
        figure = Figure(figsize=form.inches, layout="constrained")
        axes = figure.add_subplot()
        figure.patch.set_alpha(0)
        axes.patch.set_alpha(0)
        axes.yaxis.set_major_locator(MaxNLocator(4, integer=True))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: count(value)))
        draw(axes)
        axes.set_ylim(bottom=0)
        sink = io.StringIO()
        figure.savefig(sink, format="svg", metadata=dict.fromkeys(NOT_OURS))
    return _inline(sink.getvalue(), form, name, title)


def _inline(text: str, form: Form, name: str, title: str) -> str:
    """Return the SVG for a page: no prologue, unique ids, as wide as its container, labelled for screen readers."""
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.S)
    head, body = text.split(">", 1)
    head = re.sub(r' (width|height)="[^"]*"', "", head)
    body = REFERENCE.sub(rf"\g<1>{name}-{form.name}-", body)
    for variable, colour in COLOURS.items():
        body = body.replace(colour, f"var({variable})")
    return f'{head} class="{form.name}" role="img" aria-label="{escape(title)}">{body}'
