"""`bindAddress: "::"` in processes: values.yaml says that it takes IPv6 and IPv4, the operator's health port, too."""

from __future__ import annotations

from pathlib import Path
from urllib.request import urlopen

from tests.chart.chart import nested, render
from tests.chart.switches import OPERATOR
from tests.kubernetes.cluster import Cluster
from tests.operator.program import OperatorProgram
from tests.servers import eventually, free_port


def test_probes_of_either_family_reach_the_operator(cluster: Cluster, tmp_path: Path) -> None:
    said = render(nested("edgeDefaults.bindAddress", "::")).env(OPERATOR)["PENSTOCK_OPERATOR_HEALTH_HOST"]
    nobody = f"redis://127.0.0.1:{free_port()}/0"  # alive is whoever has no store, too
    program = OperatorProgram(cluster, nobody, tmp_path, health_host=said).start()
    try:
        eventually(lambda: program.page("healthz") == (200, "ok\n"))  # by 127.0.0.1
        with urlopen(f"http://[::1]:{program.port}/healthz", timeout=5) as answer:
            assert answer.status == 200
    finally:
        program.kill()
