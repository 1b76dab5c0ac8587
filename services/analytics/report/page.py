"""Render the report as one page: nothing is fetched or executed, and texts of clients are escaped."""

from __future__ import annotations

from functools import cache
from importlib import resources

from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup, escape

from services.analytics.hours import span_ending
from services.analytics.report import plots, words
from services.kit.formatting import (
    NO_VALUE,
    format_duration,
    format_hour,
    format_hour_end,
    format_number,
    format_octets,
    format_share,
    format_time,
)
from services.store.model import PUT_S, WAIT_S
from services.store.report import Report

TEMPLATE = "page.html.j2"
STYLE = "page.css"


def page(report: Report) -> str:
    """Return HTML. The same report gives the same octets."""
    return _template().render(report=report, plots=_plots(report), style=Markup(_file(STYLE)))


def _plots(report: Report) -> dict[str, Markup]:
    """Return the plots that have data, each in all forms."""
    forms = [_plots_of(report, form) for form in plots.FORMS]
    return {name: Markup("\n".join(form[name] for form in forms)) for name in forms[0]}


def _plots_of(report: Report, form: plots.Form) -> dict[str, str]:
    period = report.period
    span = span_ending(period.last, period.hours).all() if period.last else []
    hours, time, found = report.hours, plots.Time(span, period.is_running), dict[str, str]()
    if any(each.in_ or each.out for each in hours):
        found["traffic"] = plots.traffic(form, hours, time)
    if any(each.refused or each.dead for each in hours):
        found["trouble"] = plots.trouble(form, hours, time)
    if any(report.deaths.age.counts):
        title = "Dead letters by time from publish to death"
        found["age"] = plots.histogram(form, "age", title, report.deaths.age, WAIT_S, of_deaths=True)
    if any(report.put.counts):
        title = "Messages by time from request to durable answer"
        found["put"] = plots.histogram(form, "put", title, report.put, PUT_S)
    if any(report.wait.counts):
        title = "Messages by age at first delivery"
        found["wait"] = plots.histogram(form, "wait", title, report.wait, WAIT_S)
    return found


@cache
def _template() -> Template:
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    for say in (
        format_number,
        format_share,
        format_duration,
        format_octets,
        format_hour,
        format_hour_end,
        format_time,
    ):
        environment.filters[say.__name__] = say
    environment.filters["shown"] = shown
    return environment.from_string(_file(TEMPLATE))


def shown(text: str) -> Markup:
    """Return a text of a client as HTML, isolated so that its direction does not affect others."""
    return Markup("<bdi>{}</bdi>").format(words.visible(text)) if text else escape(NO_VALUE)


def _file(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text("utf-8")
