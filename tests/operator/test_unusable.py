"""Settings that the operator cannot use: it says so, and ends. No restart mends them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from penstock_operator.__main__ import EXIT_UNUSABLE

ROOT = Path(__file__).parents[2]
NOBODY = {  # a cluster that is never asked
    "current-context": "nobody",
    "contexts": [{"name": "nobody", "context": {"cluster": "nobody", "user": "nobody"}}],
    "clusters": [{"name": "nobody", "cluster": {"server": "http://127.0.0.1:1"}}],
    "users": [{"name": "nobody", "user": {"token": "none"}}],
}


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("PENSTOCK_TRACING__HEADERS", "authorization: secret", "penstock: environment: error parsing value"),
        ("PENSTOCK_TRACING__BATCH", "many", "penstock: PENSTOCK_TRACING__BATCH: Input should be"),
        (
            "PENSTOCK_OPERATOR_DISCOVER_NAMESPACES",
            "yard,*",
            "penstock: PENSTOCK_OPERATOR_DISCOVER_NAMESPACES: Value error, '*' is no name of a namespace",
        ),
        ("PENSTOCK_OPERATOR_SWEEP_S", "0", "penstock: PENSTOCK_OPERATOR_SWEEP_S: Input should be"),
        ("REDIS_URL", "nowhere", "penstock: REDIS_URL: "),
    ],
)
def test_it_says_so_and_ends(tmp_path: Path, name: str, value: str, told: str) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(json.dumps(NOBODY))
    environment = {
        **{
            known: text for known, text in os.environ.items() if not known.startswith(("PENSTOCK_", "REDIS_"))
        },
        "PYTHONPATH": f"{ROOT}:{ROOT / 'operator'}",
        "KUBECONFIG": str(kubeconfig),
        name: value,
    }
    words = [sys.executable, "-P", "-m", "penstock_operator"]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=60)
    assert (done.returncode, len(done.stderr.splitlines())) == (EXIT_UNUSABLE, 1), done.stderr
    assert done.stderr.startswith(told)
    assert "secret" not in done.stderr
