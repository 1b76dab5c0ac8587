"""Render the report as one page: nothing is fetched or executed, and texts of clients are escaped."""

from __future__ import annotations

from functools import cache
from importlib import resources

from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup, escape

from services.analytics.report.plots import plots
from services.analytics.report.words import visible
from services.kit import formatting
from services.store.report import Report

TEMPLATE = "page.html.j2"
STYLE = "page.css"


def page(report: Report) -> str:
    """Return HTML. The same report gives the same octets."""
    drawn = {each.name: Markup(each.svg()) for each in plots(report)}
    return _template().render(report=report, plots=drawn, style=Markup(_file(STYLE)))


@cache
def _template() -> Template:
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {name: say for name, say in vars(formatting).items() if name.startswith("format_")}
    environment.filters["shown"] = shown
    return environment.from_string(_file(TEMPLATE))


def shown(text: str) -> Markup:
    """Return a text of a client as HTML, isolated so that its direction does not affect others."""
    return Markup("<bdi>{}</bdi>").format(visible(text)) if text else escape(formatting.NO_VALUE)


def _file(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text("utf-8")
