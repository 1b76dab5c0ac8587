"""Draw the figures of a report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from math import nan
from typing import Any

from matplotlib.axes import Axes

from services.analytics.hours import Span
from services.analytics.report.svg import DEAD, IN, LINE, OUT, REFUSED, Form, Plot
from services.kit.formatting import format_duration
from services.store.model import PUT_S, WAIT_S
from services.store.report import Report

DAY_HOURS = 48  # a longer span has days on its axis and outlines instead of bars, which would be a pixel wide
LINE_WIDTH = 1.2


def plots(report: Report) -> Iterator[Plot]:
    """Return the plots that have data."""
    hours = Hours(report)
    if any(each.in_ or each.out for each in report.hours):
        yield Plot("traffic", "Messages published and delivered per hour", hours.traffic)
    if any(each.refused or each.dead for each in report.hours):
        yield Plot("trouble", "Refusals and dead letters per hour", hours.trouble)
    for name, title, times, bounds, colour in (
        ("age", "Dead letters by time from publish to death", report.deaths.age, WAIT_S, DEAD),
        ("put", "Messages by time from request to durable answer", report.put, PUT_S, IN),
        ("wait", "Messages by age at first delivery", report.wait, WAIT_S, IN),
    ):
        if any(times.counts):
            yield Plot(name, title, partial(_histogram, times.counts, bounds, colour))


def _histogram(counts: Sequence[int], bounds: Sequence[float], colour: str, axes: Axes, _: Form) -> None:
    """Draw counts by the upper bound of their bucket."""
    axes.bar(range(len(counts)), counts, 0.8, color=colour)
    labels = [*(format_duration(bound) for bound in bounds), "more"]
    shown = [*range(0, len(bounds), 3), len(bounds)]
    axes.set_xticks(shown, [labels[place] for place in shown])


class Hours:
    """The figures of hours, on an axis of all hours of the period."""

    def __init__(self, report: Report) -> None:
        period = report.period
        self._span = Span(period.first, period.last, period.hours).all()
        self._is_running = period.is_running
        self._is_long = len(self._span) > DAY_HOURS
        self._known = {each.hour: each for each in report.hours}
        self._places = [self._span.index(hour) for hour in self._known]

    def traffic(self, axes: Axes, form: Form) -> None:
        """Draw messages published and delivered."""
        if self._is_long:
            self._outline(axes, "in_", color=IN, linewidth=LINE_WIDTH)
            self._outline(axes, "out", color=OUT, linewidth=LINE_WIDTH, linestyle="--")
        else:
            axes.plot(self._places, self._values("in_"), color=IN, marker="o", markersize=3)
            axes.plot(self._places, self._values("out"), color=OUT, marker="s", markersize=3, linestyle="--")
        self._label(axes, form)

    def trouble(self, axes: Axes, form: Form) -> None:
        """Draw refusals and dead letters."""
        if self._is_long:
            self._outline(axes, "dead", color=DEAD, fill=True)
            self._outline(axes, "refused", color=REFUSED, linewidth=LINE_WIDTH)
        else:
            left, right = ([place + by for place in self._places] for by in (-0.2, 0.2))
            empty: dict[str, Any] = {"facecolor": "none", "edgecolor": REFUSED, "linewidth": LINE_WIDTH}
            axes.bar(left, self._values("refused"), 0.36, **empty)
            axes.bar(right, self._values("dead"), 0.36, color=DEAD)
        self._label(axes, form)

    def _values(self, name: str) -> list[int]:
        return [getattr(each, name) for each in self._known.values()]

    def _outline(self, axes: Axes, name: str, **look: Any) -> None:
        """Draw one outline over all hours instead of one shape each; unknown hours are gaps."""
        values = [getattr(self._known[hour], name) if hour in self._known else nan for hour in self._span]
        axes.stairs(values, [place - 0.5 for place in range(len(values) + 1)], **look)

    def _label(self, axes: Axes, form: Form) -> None:
        """Label hours, or days of a long span; an incomplete last hour is `now` and has a background."""
        span, last = self._span, len(self._span) - 1
        axes.set_xlim(-0.7, last + 0.7)
        if self._is_long:
            labels = {place: hour[5:10] for place, hour in enumerate(span) if hour.endswith("T00")}
        else:
            step = -(-len(span) // form.labels)
            labels = {place: f"{span[place][11:]}:00" for place in range(last, -1, -step)}
        if self._is_running:
            axes.axvspan(last - 0.5, last + 0.5, color=LINE, linewidth=0, zorder=0)
            room = len(span) / (2 * form.labels)
            labels = {**{place: text for place, text in labels.items() if place < last - room}, last: "now"}
        axes.set_xticks([*labels], [*labels.values()])
