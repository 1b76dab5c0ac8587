"""Test that SIGTERM during startup ends the operator, as there is nothing to release (docs/images.md, Guarantees)."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from tests.cli.test_startup import NAMELESS
from tests.early import sigterm_during_import
from tests.kubernetes.cluster import Cluster
from tests.operator.program import PATIENCE_S, OperatorProgram
from tests.servers import Server


def test_sigterm_ends_the_operator_during_imports(tmp_path: Path) -> None:
    assert sigterm_during_import("kopf", ["penstock_operator"], tmp_path) == 0


def test_uninstall_ignores_sigterm(tmp_path: Path) -> None:
    """Check that `uninstall` ignores SIGTERM: it removes finalizers that would hang, and ends in time on its own."""
    words = ["uninstall", "--release", "r", "--namespace", "n", "--deployment", "d"]
    assert sigterm_during_import("kopf", ["penstock_operator", *words], tmp_path) == -signal.SIGTERM


def test_user_id_without_a_name_suffices(
    defined: Cluster, namespace: str, store: Server, tmp_path: Path
) -> None:
    """Check that the operator runs with a user id without a name, as on OpenShift (services/kit/startup.py)."""
    program = OperatorProgram(defined, store.url, tmp_path, namespaces=namespace)
    names = ("USER", "LOGNAME", "LNAME", "USERNAME")
    environment = {name: value for name, value in program.environment.items() if name not in names}
    words = [*NAMELESS, sys.executable, "-P", "-m", "penstock_operator"]
    log_file = tmp_path / f"operator-{program.port}.log"  # `ready` polls it
    with log_file.open("wb") as log, subprocess.Popen(words, env=environment, stderr=log) as process:
        try:
            program.ready()
            process.terminate()
            assert process.wait(PATIENCE_S) == 0
        finally:
            process.kill()
