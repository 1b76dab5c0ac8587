"""Removing defaults: with null, and with "" in a parent chart, because Helm drops its nulls."""

from __future__ import annotations

from pathlib import Path

from tests.chart.around import Around
from tests.chart.chart import NAME, nested, render, together
from tests.chart.switches import TMQ


def test_null_removes_edge_defaults() -> None:
    limits = nested("edges.tmq.resources.limits", {"memory": None, "cpu": 500000000})
    rendered = render(limits)
    assert rendered.container(TMQ)["resources"] == {
        "requests": {"cpu": "50m", "memory": "128Mi"},
        "limits": {"cpu": 500000000},
    }
    affinity = {"edgeDefaults": {"affinity": {"podAffinity": {"a": "b"}, "nodeAffinity": {"c": "d"}}}}
    rendered = render(affinity, nested("edges.tmq.affinity.podAffinity", None))
    assert rendered.pod(TMQ)["affinity"] == {"nodeAffinity": {"c": "d"}}


def test_null_removes_one_entry_of_edge_defaults() -> None:
    both = {"a": "1", "b": "2"}
    fields = ("nodeSelector", "podLabels", "podAnnotations", "env")
    rendered = render(
        {
            "edgeDefaults": dict.fromkeys(fields, both),
            "edges": {"tmq": {each: {"a": None} for each in fields}},
        }
    )
    template = rendered[TMQ]["spec"]["template"]
    assert rendered.pod(TMQ)["nodeSelector"] == {"b": "2"}
    for found in (template["metadata"]["labels"], template["metadata"]["annotations"], rendered.env(TMQ)):
        assert (found.get("a"), found.get("b")) == (None, "2")


def test_null_is_a_value_in_settings() -> None:
    rendered = render(nested("edges.tmq.settings.create.max_length", None))
    assert rendered.file("tmq")["edges"]["tmq"]["create"] == {"max_length": None}


def test_parent_chart_removes_defaults_for_openshift(tmp_path: Path) -> None:
    """Check that a parent chart can remove user and group ids, and set another budget."""
    ids = ("runAsUser", "runAsGroup", "fsGroup")
    around = Around(
        tmp_path,
        {
            "penstock": {
                "podSecurityContext": dict.fromkeys(ids, ""),
                "redis": {"resources": {"limits": {"memory": ""}}},
                "edgeDefaults": {"pdb": {"minAvailable": 1}},
            }
        },
    )
    rendered = around.render()
    pods = [pod["spec"]["securityContext"] for _, pod in rendered.pods()]
    assert len(pods) > 5
    assert [context for context in pods if set(ids) & set(context)] == []
    assert all(context["runAsNonRoot"] for context in pods)
    assert rendered.container(f"StatefulSet/{NAME}-redis")["resources"]["limits"] == {}
    budget = rendered[f"PodDisruptionBudget/{NAME}-tmq"]["spec"]
    assert (budget["minAvailable"], "maxUnavailable" in budget) == (1, False)
    assert render()[f"PodDisruptionBudget/{NAME}-tmq"]["spec"]["maxUnavailable"] == 1


def test_empty_memory_of_console_and_analytics() -> None:
    parts = {"console": f"Deployment/{NAME}-console", "analytics": f"CronJob/{NAME}-analytics"}
    results = [
        nested(part, {"enabled": True, "resources": {"limits": {"cpu": "", "memory": ""}}}) for part in parts
    ]
    rendered = render(together(*results))
    for place in parts.values():
        resources = rendered.container(place)["resources"]
        assert resources["limits"] == {}, place
        assert set(resources["requests"]) == {"cpu", "memory"}, place
