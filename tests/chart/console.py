"""Objects of the console that exist only if a switch in the values is on."""

from __future__ import annotations

from typing import Any

from tests.chart.chart import NAME, Rendered, Values, nested, together
from tests.chart.switch import Switch

CONSOLE: Values = {"console": {"enabled": True}}
PLACE = f"Deployment/{NAME}-console"
PROXY: Values = nested("console.auth.proxy", {"networks": ["10.0.7.0/24"], "roles": {"sre": "admin"}})


def settings(rendered: Rendered) -> Any:
    """Return `console` of its penstock.yaml."""
    return rendered.file("console")["console"]


def volume(rendered: Rendered, name: str) -> Any:
    """Return the volume, or None."""
    return next((each for each in rendered.pod(PLACE)["volumes"] if each["name"] == name), None)


def asked(rendered: Rendered) -> dict[str, Any]:
    """Return the environment of the container of `helm test` that queries the console; {} without one."""
    containers = {each["name"]: each for each in rendered.pod(f"Pod/{NAME}-test")["containers"]}
    return {each["name"]: each for each in containers.get("overview", {}).get("env", ())}


def health_port(rendered: Rendered, service: str) -> bool:
    return "health" in [port["name"] for port in rendered[f"Service/{service}"]["spec"]["ports"]]


CONSOLE_SWITCHES = (
    Switch(
        "console.enabled",
        tuple(
            f"{kind}/{NAME}-console"
            for kind in (
                *("Deployment", "Service", "ConfigMap", "Secret", "ServiceAccount"),
                *("NetworkPolicy", "PodDisruptionBudget"),
            )
        ),
        has=lambda r: asked(r)["CONSOLE_URL"]["value"] == f"http://{NAME}-console:80",
    ),
    Switch(
        "console.auth.existingSecret",
        on="tokens",
        off="",
        beside=CONSOLE,
        has=lambda r: (
            f"Secret/{NAME}-console" not in r
            and volume(r, "tokens")["secret"]["secretName"] == "tokens"
            and asked(r)["CONSOLE_TOKEN"]["valueFrom"]["secretKeyRef"]["name"] == "tokens"
        ),
    ),
    Switch(
        "console.auth.tokens",
        (f"Secret/{NAME}-console",),
        on=[{"name": "ann", "role": "view", "key": "ann"}],
        off=[],
        beside=together(CONSOLE, PROXY),
        has=lambda r: (
            settings(r)["tokens"] == [{"name": "ann", "role": "view", "file": "/etc/penstock/tokens/ann"}]
            and asked(r)
        ),
    ),
    Switch(
        "console.auth.proxy",
        on=PROXY["console"]["auth"]["proxy"],
        off={},
        beside=CONSOLE,
        has=lambda r: (
            settings(r).get("proxy")
            == {
                "networks": ["10.0.7.0/24"],
                "user_header": "X-Forwarded-User",
                "role_header": "X-Forwarded-Groups",
                "roles": {"sre": "admin"},
            }
        ),
    ),
    Switch(
        "console.bindAddress",  # every address, or the pod's own
        (f"Service/{NAME}-console",),
        on="",
        off="127.0.0.1",
        beside=CONSOLE,
        has=lambda r: settings(r)["host"] == "0.0.0.0" and asked(r),
    ),
    Switch(
        "console.tls.secretName",
        on="certificate",
        off="",
        beside=CONSOLE,
        has=lambda r: (
            settings(r).get("tls")
            == {"certificate": "/etc/penstock/tls/tls.crt", "key": "/etc/penstock/tls/tls.key"}
            and volume(r, "tls")["secret"]["secretName"] == "certificate"
            and asked(r)["CONSOLE_URL"]["value"].startswith("https://")
        ),
    ),
    Switch(
        "console.tls.clientCA",
        beside=together(CONSOLE, nested("console.tls.secretName", "certificate")),
        has=lambda r: settings(r)["tls"].get("client_ca") == "/etc/penstock/tls/ca.crt" and not asked(r),
    ),
    Switch(
        "console.service.targetPort",
        on=4180,
        off=None,
        beside=CONSOLE,
        has=lambda r: (
            r[f"Service/{NAME}-console"]["spec"]["ports"][0]["targetPort"] == 4180
            and r[f"NetworkPolicy/{NAME}-console"]["spec"]["ingress"][0]["ports"] == [{"port": 4180}]
            and not asked(r)
        ),
    ),
    Switch("console.pdb.enabled", (f"PodDisruptionBudget/{NAME}-console",), beside=CONSOLE),
    Switch("console.serviceAccount.create", (f"ServiceAccount/{NAME}-console",), beside=CONSOLE),
    Switch(
        "console.ingress.enabled",
        (f"Ingress/{NAME}-console",),
        beside=together(CONSOLE, nested("console.ingress.hosts", ["console.example.org"])),
    ),
    Switch(
        "console.service.type",  # only scrapers may reach its metrics
        (f"Service/{NAME}-console-health",),
        on="NodePort",
        off="ClusterIP",
        beside=together(CONSOLE, nested("monitoring.serviceMonitor.enabled", True)),
        has=lambda r: not health_port(r, f"{NAME}-console") and health_port(r, f"{NAME}-console-health"),
    ),
)
