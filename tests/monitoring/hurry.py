"""Rules whose minutes are shortened to seconds, and waiting for alerts."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from tests.monitoring.prometheus import Prometheus, scraped

WINDOW = "10s"  # replaces all ranges of rules


def hurried(groups: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the document of a rules file with short times."""
    for rule in (rule for group in groups for rule in group["rules"]):
        rule["expr"] = re.sub(
            r"\[\d+[smhd](:\d+m)?\]", lambda at: f"[{WINDOW}{':1s' if at[1] else ''}]", rule["expr"]
        )
        rule["expr"] = re.sub(r"offset \d+[smhd]", f"offset {WINDOW}", rule["expr"])
        rule["expr"] = rule["expr"].replace("< 3600", f"< {WINDOW[:-1]}")
        rule["for"] = "0s" if rule["for"] == "0m" else "2s"
    return {"groups": groups}


def sounds(prometheus: Prometheus, *names: str) -> list[dict[str, str]]:
    """Wait until all of them fire; return the labels of the last."""
    scraped(lambda: set(names) <= prometheus.firing().keys())
    return prometheus.firing()[names[-1]]


def ends(prometheus: Prometheus, names: Iterable[str]) -> None:
    scraped(lambda: not prometheus.firing().keys() & set(names))


def ends_are_known(prometheus: Prometheus) -> None:
    """Check that every rule can be evaluated."""
    groups = prometheus.ask("rules")["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    assert len(rules) > 20
    assert {rule["health"] for rule in rules} == {"ok"}, rules
