"""The console of a release: docs/chart.md, "Console". tests/docs runs the commands."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.chart.chart import CHART, NAME, Rendered, Values, nested, render, together
from tests.chart.conftest import Read
from tests.chart.console import CONSOLE, PLACE, PROXY, asked, settings
from tests.chart.flows import Flows
from tests.cli.shell import ANY_PORT, Up
from tests.servers import eventually, free_port

ROOT = Path(__file__).parents[2]
SCRIPT = CHART / "files" / "scripts" / "overview.py"
VIEWER = {"name": "grafana", "role": "view", "key": "grafana"}
ADMIN = {"name": "admin", "role": "admin", "key": "admin-token"}
BESIDE: Values = together(
    CONSOLE,
    PROXY,
    {
        "console": {
            "auth": {"tokens": [], "proxy": {"networks": ["127.0.0.1/32"]}},
            "bindAddress": "127.0.0.1",
            "service": {"targetPort": 4180},
            "extraContainers": [{"name": "proxy", "image": "proxy:1"}],
            "ingress": {"enabled": True, "hosts": ["console.example.org"]},
        }
    },
)
ELSEWHERE = {"app.kubernetes.io/component": "else"}


def said(**values: Any) -> Values:
    return {"console": {"enabled": True, **values}}


# Settings -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("values", [CONSOLE, BESIDE, together(CONSOLE, PROXY)], ids=["own", "beside", "both"])
def test_console_accepts_its_settings_and_binds_its_port(values: Values, read: Read) -> None:
    rendered = render(values, nested("console.settings.refresh_s", 5))
    everything, own = read(rendered, "console")
    ports = {each["name"]: each["containerPort"] for each in rendered.container(PLACE)["ports"]}
    assert ports == {"http": own.port, "health": everything.health.port}
    assert (everything.health.host, own.refresh_s, own.is_local) == ("0.0.0.0", 5, False)
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert rendered.container(PLACE)[probe]["httpGet"]["port"] == "health"


def test_loopback_console_has_no_service_but_a_token(read: Read) -> None:
    rendered = render(said(bindAddress="127.0.0.1"))
    _, own = read(rendered, "console")
    assert (own.is_local, own.host) == (False, "127.0.0.1")
    assert f"Service/{NAME}-console" not in rendered
    assert f"Secret/{NAME}-console" in rendered
    assert asked(rendered) == {}


def test_token_digests_need_no_secret() -> None:
    digest = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
    rendered = render(said(auth={"tokens": [{"name": "ann", "role": "operate", "sha256": digest}]}))
    assert settings(rendered)["tokens"] == [{"name": "ann", "role": "operate", "sha256": digest}]
    assert f"Secret/{NAME}-console" not in rendered
    assert asked(rendered) == {}


def test_helm_test_uses_a_view_token_if_possible() -> None:
    for tokens, key in (([ADMIN], "admin-token"), ([VIEWER, ADMIN], "grafana"), ([ADMIN, VIEWER], "grafana")):
        rendered = asked(render(said(auth={"tokens": tokens})))
        assert rendered["CONSOLE_TOKEN"]["valueFrom"]["secretKeyRef"]["key"] == key


# Network access -------------------------------------------------------------------------------------------------------


def test_console_reaches_only_the_store_and_name_servers() -> None:
    flows = Flows(render(CONSOLE))
    own = flows.pods["console"]
    assert flows.passes(own, flows.pods["redis"], 6379)
    assert flows.passes(own, {"k8s-app": "kube-dns"}, 53, "UDP")
    for other, port in ((None, 443), (flows.pods["tmq"], 6161), (flows.pods["operator"], 9161), (own, 8080)):
        assert not flows.passes(own, other, port), other
    rendered = Flows(render(CONSOLE, nested("console.networkPolicy.egress", [{"ports": [{"port": 443}]}])))
    assert rendered.passes(rendered.pods["console"], None, 443)


@pytest.mark.parametrize("path", ["console.networkPolicy.from", "networkPolicy.clientsFrom"])
def test_console_ingress_rules(path: str) -> None:
    everybody = Flows(render(CONSOLE))
    assert everybody.passes(ELSEWHERE, everybody.pods["console"], 8080)
    flows = Flows(render(CONSOLE, nested(path, [{"podSelector": {"matchLabels": {"may": "yes"}}}])))
    own = flows.pods["console"]
    assert flows.passes({"may": "yes"}, own, 8080)
    assert flows.passes(flows.pods["test"], own, 8080)
    assert not flows.passes(ELSEWHERE, own, 8080)
    assert flows.passes(ELSEWHERE, own, 9161)  # of networkPolicy.metricsFrom


def test_sidecar_proxy_is_the_only_way_in() -> None:
    rendered = render(BESIDE)
    flows = Flows(rendered)
    assert rendered[f"Service/{NAME}-console"]["spec"]["ports"][0]["targetPort"] == 4180
    assert f"Ingress/{NAME}-console" in rendered
    assert flows.passes(ELSEWHERE, flows.pods["console"], 4180)
    assert not flows.passes(ELSEWHERE, flows.pods["console"], 8080)


# The script of `helm test` --------------------------------------------------------------------------------------------


@contextmanager
def console(rendered: Rendered, folder: Path, store: str, token: str) -> Iterator[str]:
    """Run the console with the file of a release on free ports, with a token as in the pod; return its URL."""
    (folder / "admin-token").write_text(token)
    file = rendered[f"ConfigMap/{NAME}-console"]["data"]["penstock.yaml"]
    path = folder / "penstock.yaml"
    path.write_text(file.replace("/etc/penstock/tokens", str(folder)).replace("0.0.0.0", "127.0.0.1"))
    environment = {**os.environ, **ANY_PORT, "PENSTOCK_CONFIG": str(path), "REDIS_URL": store}
    log = folder / "console.log"
    with log.open("wb") as out:
        command = [sys.executable, "-P", "-m", "services.console"]
        process = subprocess.Popen(command, env=environment, cwd=folder, stdout=out, stderr=out)
    try:
        (event,) = eventually(lambda: _events(log, "listening"), 60)
        yield f"http://{event['host']}:{event['port']}"
    finally:
        process.terminate()
        assert process.wait(30) == 0, log.read_text()


def _events(log: Path, action: str) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in log.read_text().splitlines() if line.endswith("}")]
    return [line for line in lines if line.get("action") == action]


def ask(url: str, token: str, **more: str) -> tuple[int, str]:
    environment = {"PATH": os.environ["PATH"], "CONSOLE_URL": url, "CONSOLE_TOKEN": token, **more}
    command = [sys.executable, str(SCRIPT)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    assert done.stderr == ""
    return done.returncode, done.stdout.strip()


def test_configured_console_accepts_its_token(up: Up, tmp_path: Path) -> None:
    with console(render(CONSOLE), tmp_path, up.tenant["url"], "abc" * 8) as url:
        status, reply = ask(url, "abc" * 8, START_S="20")
        assert (status, reply.endswith(" edges")) == (0, True), reply
        status, reply = ask(url, "wrong")
        assert (status, "/api/v1/overview returned 401" in reply) == (1, True)


def test_unreachable_console_fails_the_test() -> None:
    url = f"http://127.0.0.1:{free_port()}"
    status, reply = ask(url, "abc", START_S="1")
    assert (status, len(reply.splitlines()), "Connection refused" in reply) == (1, 2, True)
