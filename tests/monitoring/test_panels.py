"""Every panel of every dashboard shows something, on a real Prometheus that scrapes real processes with real work."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.chart.chart import CHART
from tests.monitoring.conftest import NewPrometheus
from tests.monitoring.prometheus import Prometheus, Target
from tests.monitoring.world import NAMESPACE, World
from tests.servers import eventually
from tools.dashboards.__main__ import BOARDS, text
from tools.dashboards.board import Board

FILES = sorted((CHART / "files" / "dashboards").glob("*.json"))
UNITS = {"short", "reqps", "s", "Bps", "bytes", "percentunit", "cps", "mps"}
RATE_INTERVAL = "10s"  # what Grafana makes of scrapes each second, some more
VARIABLE = re.compile(r"\$(\w+)|\$\{(\w+)\}")
LEGEND = re.compile(r"\{\{(\w+)\}\}")


@pytest.fixture(params=FILES, ids=lambda path: path.stem)
def board(request: pytest.FixtureRequest) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(request.param.read_text())
    return found


def targets(board: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Title, query and legend."""
    for panel in board["panels"]:
        for target in panel["targets"]:
            yield panel["title"], target["expr"], target["legendFormat"]


@pytest.mark.parametrize("one", BOARDS, ids=lambda one: one.name)
def test_files_are_as_they_are_written(one: Board) -> None:
    """Else: make chart-docs."""
    assert (CHART / "files" / "dashboards" / f"{one.name}.json").read_text() == text(one)
    assert {path.stem for path in FILES} == {each.name for each in BOARDS}


def test_a_panel_says_what_it_shows(board: dict[str, Any]) -> None:
    assert len({panel["title"] for panel in board["panels"]}) == len(board["panels"])
    assert board["description"]
    for panel in board["panels"]:
        assert panel["title"]
        assert panel["description"].endswith(".")
        assert panel["fieldConfig"]["defaults"]["unit"] in UNITS
        legends = [target["legendFormat"] for target in panel["targets"]]
        assert len(set(legends)) == len(legends) > 0, panel["title"]


def test_panels_stand_beside_each_other(board: dict[str, Any]) -> None:
    """No two have the same place."""
    taken: set[tuple[int, int]] = set()
    for panel in board["panels"]:
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= 24
        squares = {(at["x"] + x, at["y"] + y) for x in range(at["w"]) for y in range(at["h"])}
        assert not squares & taken
        taken |= squares


def test_whoever_looks_may_choose(board: dict[str, Any]) -> None:
    """Data source, namespace, job and pod, and each choice is used; each is chosen among what was chosen before it."""
    variables = [each["name"] for each in board["templating"]["list"]]
    assert variables[:4] == ["datasource", "namespace", "job", "pod"]
    used = {name for _, expr, _ in targets(board) for name, _ in VARIABLE.findall(expr)}
    assert used - {"__rate_interval"} == set(variables) - {"datasource"}
    for each in board["templating"]["list"][1:]:
        assert each["allValue"] == ".*"  # also where nobody gives series a namespace, as on a laptop
        known = {name for name, _ in VARIABLE.findall(each["definition"])}
        assert known <= set(variables[: variables.index(each["name"])])
    for _, expr, _ in targets(board):
        assert 'namespace=~"$namespace",pod=~"$pod"' in expr
        assert set(re.findall(r"\[([^\]]*)\]", expr)) <= {"$__rate_interval", "1h"}


def filled(text: str, chosen: dict[str, str]) -> str:
    """As Grafana does."""
    values = {**chosen, "__rate_interval": RATE_INTERVAL}
    return VARIABLE.sub(lambda found: values[found[1] or found[2]], text)


def choices(prometheus: Prometheus, board: dict[str, Any], **chosen: str) -> dict[str, set[str]]:
    """What each variable offers, where these are chosen and all of everything else."""
    found = {}
    for each in board["templating"]["list"][1:]:
        called = re.fullmatch(r"label_values\((.*), (\w+)\)", each["definition"])
        assert called, each["definition"]
        found[each["name"]] = prometheus.values(called[2], filled(called[1], chosen))
        chosen.setdefault(each["name"], each["allValue"])
    return found


def named(legend: str, labels: dict[str, str]) -> str:
    return LEGEND.sub(lambda name: labels.get(name[1], ""), legend).strip()


def empty(prometheus: Prometheus, board: dict[str, Any], **chosen: str) -> list[str]:
    """Panels without data, or whose legends do not say which series is which."""
    everything = {each["name"]: each["allValue"] for each in board["templating"]["list"][1:]}
    found = []
    for title, expr, legend in targets(board):
        series = prometheus.query(filled(expr, {**everything, **chosen}))
        if not series:
            found.append(f"{board['title']}: {title}: {expr}")
        shown = [named(legend, labels) for labels, _ in series]
        if len(set(shown)) != len(shown) or not all(shown):
            found.append(f"{board['title']}: {title}: legends {shown}")
    return found


def every_board() -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in FILES]


def test_every_panel_shows_something(world: World, new_prometheus: NewPrometheus) -> None:
    """Whatever is chosen: everything, or one namespace and job."""
    pods = world.targets()
    plain = {name: Target(pods[name].host, pods[name].port) for name in ("tmq", "operator")}
    prometheus = new_prometheus({"shop/penstock": pods.values(), "laptop": plain.values()})
    eventually(lambda: set(prometheus.targets().values()) == {"up"})
    wrong = eventually(
        lambda: [line for board in every_board() for line in empty(prometheus, board)],
        until=lambda found: not found,
    )
    assert wrong == []
    for board in every_board():
        assert empty(prometheus, board, namespace=NAMESPACE, job="shop/penstock") == []
        offered = choices(prometheus, board, namespace=NAMESPACE, job="shop/penstock")
        assert all(offered.values()), (board["title"], offered)
    check_numbers(prometheus)


def check_numbers(prometheus: Prometheus) -> None:
    """Some that are known."""
    board = json.loads((CHART / "files/dashboards/dead-letters.json").read_text())
    found = {title: expr for title, expr, _ in targets(board)}
    everything = {each["name"]: each["allValue"] for each in board["templating"]["list"][1:]}
    chosen = {**everything, "namespace": NAMESPACE}
    ((_, dead),) = prometheus.query(filled(found["Dead letters"], chosen))
    assert dead == 2
    by_queue = prometheus.query(filled(found["By queue"], chosen))
    assert {labels["queue"]: value for labels, value in by_queue}["dying"] == 2


def test_without_kubernetes_series_have_no_namespace(world: World, new_prometheus: NewPrometheus) -> None:
    """On a laptop: an overview, and what one edge does."""
    places = {name: Target(target.host, target.port) for name, target in world.targets().items()}
    prometheus = new_prometheus({"penstock": places.values()})
    overview = json.loads((CHART / "files/dashboards/overview.json").read_text())
    eventually(lambda: not [line for line in empty(prometheus, overview) if "legends" not in line])
