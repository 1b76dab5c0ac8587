"""Test invalid settings of the operator: it reports them and exits, because no restart helps."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from penstock_operator.__main__ import EXIT_UNUSABLE

from tests.kubernetes.cluster import Cluster
from tests.operator.program import OperatorProgram

NO_CLUSTER = {  # a cluster that is never contacted
    "current-context": "missing",
    "contexts": [{"name": "missing", "context": {"cluster": "missing", "user": "missing"}}],
    "clusters": [{"name": "missing", "cluster": {"server": "http://127.0.0.1:1"}}],
    "users": [{"name": "missing", "user": {"token": "none"}}],
}


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("PENSTOCK_TRACING__HEADERS", "authorization: secret", "environment: error parsing value"),
        ("PENSTOCK_TRACING__BATCH", "many", "PENSTOCK_TRACING__BATCH: Input should be"),
        ("PENSTOCK_TRACING__ENDPOINT", "collector:4318", "PENSTOCK_TRACING__ENDPOINT: "),
        (
            "PENSTOCK_OPERATOR_DISCOVER_NAMESPACES",
            "yard,*",
            "PENSTOCK_OPERATOR_DISCOVER_NAMESPACES: Value error, '*' is not the name of a namespace",
        ),
        (
            "PENSTOCK_OPERATOR_NAMESPACES",
            "*,shop",
            "PENSTOCK_OPERATOR_NAMESPACES: Value error, use either * for all namespaces, or names",
        ),
        (
            "PENSTOCK_OPERATOR_NAMESPACES",
            "team-*",
            "PENSTOCK_OPERATOR_NAMESPACES: Value error, 'team-*' is not the name of a namespace: write full names",
        ),
        ("PENSTOCK_OPERATOR_SWEEP_S", "0", "PENSTOCK_OPERATOR_SWEEP_S: Input should be"),
        ("PENSTOCK_OPERATOR_SWEEP_S", "soon", "PENSTOCK_OPERATOR_SWEEP_S: Input should be a valid number"),
        ("REDIS_URL", "invalid", "REDIS_URL: "),
    ],
)
def test_unusable_setting_ends_the_operator(tmp_path: Path, name: str, value: str, text: str) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(json.dumps(NO_CLUSTER))
    program = OperatorProgram(Cluster(kubeconfig, tmp_path), "", tmp_path)
    program.environment[name] = value
    assert program.start().ended() == EXIT_UNUSABLE, program.text()
    (line,) = program.text().splitlines()
    assert line.startswith(f"penstock: {text}")
    assert "secret" not in line
