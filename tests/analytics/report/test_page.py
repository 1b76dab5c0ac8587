"""Test the text of the page: escaped, reproducible, and self-contained."""

from __future__ import annotations

import random
import re
from functools import cache
from html.parser import HTMLParser
from typing import Any

import matplotlib as mpl
import pytest

from services.analytics.report import words
from services.analytics.report.figures import make
from services.analytics.report.page import page
from services.analytics.report.period import WITH_HOURS
from services.analytics.tables import GOLD
from services.store.report.report import Report
from tests.analytics.report.rows import HOSTILE, hour, some, tables
from tests.analytics.report.test_figures import OF
from tests.reports import document, report

ALLOWED = {"data:,", "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}


class Reader(HTMLParser):
    """The page's tags and texts, by the parser of the standard library."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.said: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.said.append(data)


@cache
def hostile() -> str:
    return page(make(tables(some(random.Random(7), 3, HOSTILE), 24), OF))


@cache
def usual() -> str:
    return page(report())


@cache
def long(hours: int) -> str:
    return page(make(tables(some(random.Random(8), hours, ("orders",)), hours), OF))


def test_what_strangers_wrote_is_text() -> None:
    text = hostile()
    read = Reader(text)
    assert {tag for tag, _ in read.tags} & {"script", "img", "iframe", "object", "form", "a"} == set()
    assert not any(name.startswith("on") for _, attributes in read.tags for name in attributes)
    for name in HOSTILE:
        assert words.visible(name[:99]) in "".join(read.said)
    assert "49" not in re.findall(r"\{\{ (.*?) \}\}", text)
    assert re.search(r"[\x00-\x08\x0b-\x1f\u202a-\u202e\u2066-\u2069]", text) is None


def spoilt(value: Any) -> Any:
    """Return the value with a hostile text in place of every text."""
    match value:
        case str():
            return HOSTILE[1]
        case dict():
            return {name: spoilt(each) for name, each in value.items()}
        case list() | tuple():
            return [spoilt(each) for each in value]
    return value


def test_no_field_of_a_report_is_more_than_text() -> None:
    told = document()
    kept = {name: told[name] for name in ("period", "hours")}
    (change,) = told["changes"]["top"]
    changes = {"count": 1, "top": [{**spoilt(change), "hour": change["hour"]}]}
    read = Reader(page(Report.model_validate({**spoilt(told), **kept, "changes": changes})))
    assert not any(name.startswith("on") for _, attributes in read.tags for name in attributes)
    assert "img" not in {tag for tag, _ in read.tags}
    assert "".join(read.said).count(HOSTILE[1]) > 20


def test_nothing_leads_out_of_it() -> None:
    for text in (hostile(), usual()):
        targets = {
            value
            for _, attributes in Reader(text).tags
            for name, value in attributes.items()
            if name in ("src", "href", "action", "xlink:href", "xmlns", "xmlns:xlink") and value
        }
        assert {each for each in targets if not each.startswith("#")} <= ALLOWED
        assert set(re.findall(r"url\((.)", text)) <= {"#"}
        assert "@import" not in text


def test_names_of_parts_are_there_once() -> None:
    ids = [attributes["id"] for _, attributes in Reader(hostile()).tags if "id" in attributes]
    assert len(ids) == len(set(ids)) > 20
    wanted = re.findall(r'(?:url\(#|href="#|aria-labelledby=")([^)"]+)', hostile())
    assert set(wanted) <= set(ids)


def test_the_same_report_gives_the_same_octets_whatever_others_set() -> None:
    first = usual()
    with mpl.rc_context({"svg.hashsalt": None, "font.size": 30, "axes.grid": False}):
        assert page(report()) == first
    assert "20" + "26-" not in first  # not today's date


def test_numbers_are_those_of_the_report() -> None:
    said = re.sub(r"\s+", " ", " ".join(Reader(usual()).said))
    for wanted in (
        "2025-11-23 17:00 until now, 2025-11-24 16:00:00 UTC",
        "24 hours, 2 of them with records; the last hour is not over, so its figures are incomplete.",
        "2025-11-24 16:00 incomplete orders main deaths up 10 1 9.0",
        "1,200 337.6 KiB",
        "the budget is exhausted",
        "497.5 % objective 99.9 %",
        "Incomplete data. Samples trimmed before a run read them: 15;",
        "in quarantine with the reason: 5.",
        "timeout after 0 ms",
        "3 more not shown",
        "timeout after 0 ms example: timeout after 30 ms",
        "2 ms, 40 ms 100 ms, 7.5 s 90",
        "206 200 - - -",
    ):
        assert wanted in said, wanted


def test_an_alarm_is_of_the_period_and_not_of_the_last_run() -> None:
    nothing = {"first": "", "last": "", "hours": 24, "known": 0}

    def told(**missing: int) -> str:
        """Return the page of a period without hours, though its own run has lost 5 samples."""
        missed = dict.fromkeys(("lost_samples", "lost_streams", "quarantined_dead", "quarantined_samples"), 0)
        return page(report(period=nothing, hours=[], missing={**missed, **missing}))

    assert "Incomplete data" not in told()
    assert "read them: 7" in told(lost_samples=7)
    assert "had read them: 3" in told(lost_streams=3)
    assert "with the reason: 9" in told(quarantined_dead=9)
    assert "with the reason: 9" in told(quarantined_samples=9)
    assert "Records too late for the hourly tables: 8" in told(late=8)


def test_why_something_was_refused_stands_there_where_nothing_was_to_be_put_in(chance: random.Random) -> None:
    (own,) = some(chance, 1, ("orders",)).values()
    row = {
        **own["traffic"][0],
        "in": 0,
        "refused_all": 500,
        "refused_puts": 0,
        "refused": {"lease_lost": 500},
    }
    found = make(tables({hour(0): {"traffic": [row]}}, 24), OF)
    assert found.budget.asked == 0
    said = re.sub(r"\s+", " ", " ".join(Reader(page(found)).said))
    assert "Refusals by reason" in said
    assert "lease_lost 500" in said
    assert "Refusals by reason" not in page(report(refused=[]))


@pytest.mark.parametrize("kept", [each.name for each in GOLD])
def test_there_is_a_page_of_any_one_table(kept: str, chance: random.Random) -> None:
    """Check pages with rows of one table, and of one that has its hours: unknown values leave no gap."""
    names = {kept} if kept in {table.name for table in WITH_HOURS} else {kept, "edges"}
    rows = {
        name: {table: own for table, own in each.items() if table in names}
        for name, each in some(chance, 2, ("a", "b")).items()
    }
    read = Reader(page(make(tables(rows, 24), OF)))
    assert "Records of this run" in "".join(read.said)
    assert "No records yet" not in "".join(read.said)
    assert "None" not in "".join(read.said)


def plot(text: str, name: str, form: str) -> str:
    """Return the plot in this form with `name` in its label."""
    (found,) = (
        each
        for each in re.findall(r"<svg .*?</svg>", text, re.S)
        if name in each[:900] and f'class="{form}"' in each
    )
    return found


def test_the_hour_that_runs_is_marked_in_plots() -> None:
    over = page(report(period={**document()["period"], "is_running": False}))
    for form in ("wide", "narrow"):
        for name in ("Messages published and delivered", "Refusals and dead letters"):
            assert ">now</text>" in plot(usual(), name, form)
            assert ">now</text>" not in plot(over, name, form)
    assert usual().count("incomplete hour") == 2
    assert "until now" not in over


def test_many_hours_are_outlines_and_not_bars() -> None:
    """Check that 168 hours are drawn as outlines: two bars an hour would be a pixel wide each."""

    def shapes(text: str, name: str, form: str) -> int:
        found = plot(text, name, form)
        return found.count("<path") + found.count("<use")

    for form in ("wide", "narrow"):
        for name in ("Messages published and delivered", "Refusals and dead letters"):
            assert shapes(long(48), name, form) > 48
            assert shapes(long(168), name, form) < 40


def test_hours_without_records_leave_a_gap_in_outlines() -> None:
    rows = some(random.Random(8), 168, ("orders",))
    gap = {hour: own for hour, own in rows.items() if not hour.startswith("2025-11-21")}
    whole, broken = (
        plot(text, "Messages published", "wide") for text in (long(168), page(make(tables(gap, 168), OF)))
    )
    assert broken.count("M ") > whole.count("M ")


def test_a_report_of_nothing_says_so() -> None:
    text = page(make(tables({}, 24), OF))
    assert "No records yet" in text
    assert "<svg" not in text


def test_an_axis_has_short_numbers() -> None:
    assert [words.count(each) for each in (0, 900, 1500, 2e6)] == ["0", "900", "1.5 k", "2 M"]
