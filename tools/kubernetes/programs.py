"""Programs in Go that the tests use, with their versions and paths: Kubernetes, an object store, a trace collector.

Versions are raised only here; `make kubernetes-lock` then updates go.mod and go.sum.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tools.cache import Kept, NotBuilt

KUBERNETES_VERSION = "1.36.3"
# newer kubelets want containerd 2 and refuse cgroups v1; a node may be up to three minors older than its API server
NODE_VERSION = "1.34.4"
# the oldest that Chart.yaml supports: it may refuse definitions that newer versions accept
OLDEST_VERSION = "1.32.9"
CHECK_VERSION = f"{OLDEST_VERSION}-1"  # raise the end with modules/definitions/check-definitions
HELM_VERSION = "4.3.1"
COREDNS_VERSION = "1.15.0"
VERSITYGW_VERSION = "1.8.0"  # speaks S3, and keeps objects in a folder
COLLECTOR_VERSION = "0.165.0"  # the OpenTelemetry collector
COLLECTOR_BUILD = f"{COLLECTOR_VERSION}-1"  # raise the end with modules/collector/otelcol
PAUSE_VERSION = "1"  # raise it with modules/node/pause

KUBERNETES = "k8s.io/kubernetes"
MODULES = Path(__file__).parent / "modules"
# the programs in KUBEBUILDER_ASSETS, as provided by Kubernetes' envtest
ENVTEST = ("kube-apiserver", "etcd", "kubectl")

WITHOUT_NODE = ("etcd", "promtool")  # installed from Debian packages; they need no node


@dataclass(frozen=True)
class Module:
    """A Go module of this project. It requires the modules of programs that share dependencies."""

    name: str
    requires: Mapping[str, str]  # versions by module path
    values: Mapping[str, str] = field(default_factory=dict)  # Go variables with the version, as in releases

    @property
    def folder(self) -> Path:
        return MODULES / self.name


@dataclass(frozen=True)
class Program:
    """A program built with Go."""

    kept: Kept
    module: Module
    package: str

    @classmethod
    def of(cls, module: Module, package: str, version: str) -> Program:
        name = package.rpartition("/")[2]
        return cls(Kept(name, version, name), module, package)


def _kubernetes(name: str, version: str) -> Module:
    major, minor, _ = version.split(".")
    values = {"gitVersion": f"v{version}", "gitMajor": major, "gitMinor": minor}
    places = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
    said = {f"{place}.{variable}": value for place in places for variable, value in values.items()}
    return Module(name, {KUBERNETES: version}, said)


_CONTROL = _kubernetes("control", KUBERNETES_VERSION)
_NODE = _kubernetes("node", NODE_VERSION)
_CLIENTS = Module(
    "clients",
    {"helm.sh/helm/v4": HELM_VERSION},
    {"helm.sh/helm/v4/internal/version.version": f"v{HELM_VERSION}"},
)
_DEFINITIONS = Module(
    "definitions", {"k8s.io/apiextensions-apiserver": f"0.{OLDEST_VERSION.partition('.')[2]}"}
)
_OBJECTS = Module("objects", {"github.com/versity/versitygw": VERSITYGW_VERSION})
_COREDNS = Module("coredns", {"github.com/coredns/coredns": COREDNS_VERSION})
_OTEL = "go.opentelemetry.io/collector"
_COLLECTOR = Module(
    "collector",
    {f"{_OTEL}/otelcol": COLLECTOR_VERSION, f"{_OTEL}/receiver/otlpreceiver": COLLECTOR_VERSION},
)

_KUBECTL = Program.of(_CONTROL, f"{KUBERNETES}/cmd/kubectl", KUBERNETES_VERSION)
_HELM = Program.of(_CLIENTS, "helm.sh/helm/v4/cmd/helm", HELM_VERSION)
# programs that are requested together; one `go build` builds those of one module in a group
GROUPS = {
    "clients": (_KUBECTL, _HELM),  # for an existing cluster
    "apiserver": (
        Program.of(_CONTROL, f"{KUBERNETES}/cmd/kube-apiserver", KUBERNETES_VERSION),
        _KUBECTL,
        _HELM,
        Program.of(_DEFINITIONS, "penstock.dev/tools/definitions/check-definitions", CHECK_VERSION),
    ),
    "objects": (Program.of(_OBJECTS, "github.com/versity/versitygw/cmd/versitygw", VERSITYGW_VERSION),),
    "collector": (Program.of(_COLLECTOR, "penstock.dev/tools/collector/otelcol", COLLECTOR_BUILD),),
    "node": (
        Program.of(_CONTROL, f"{KUBERNETES}/cmd/kube-controller-manager", KUBERNETES_VERSION),
        Program.of(_CONTROL, f"{KUBERNETES}/cmd/kube-scheduler", KUBERNETES_VERSION),
        Program.of(_NODE, f"{KUBERNETES}/cmd/kubelet", NODE_VERSION),
        Program.of(_NODE, f"{KUBERNETES}/cmd/kube-proxy", NODE_VERSION),
        Program.of(_NODE, "penstock.dev/tools/node/pause", PAUSE_VERSION),
        Program.of(_COREDNS, "github.com/coredns/coredns", COREDNS_VERSION),
    ),
}
PROGRAMS = {program.kept.name: program for group in GROUPS.values() for program in group}
MODULE_PATH = "penstock.dev/tools/"  # followed by the module's name


def modules() -> list[Module]:
    return list({program.module.name: program.module for program in PROGRAMS.values()}.values())


def find(name: str) -> str:
    """Return the path of the program: built, given by KUBEBUILDER_ASSETS, or installed. Raises NotBuilt."""
    if name in ENVTEST and (assets := os.environ.get("KUBEBUILDER_ASSETS")):
        return _given(Path(assets).absolute(), name)
    if name in PROGRAMS:
        return _built(PROGRAMS[name])
    if installed := shutil.which(name) or shutil.which(name, path="/usr/local/sbin:/usr/sbin:/sbin"):
        return installed
    group = "kubernetes" if name in WITHOUT_NODE else "node"
    raise NotBuilt(f"{name} is missing; tools/system {group} installs it, or says how")


def _given(assets: Path, name: str) -> str:
    if (assets / name).exists():
        return str(assets / name)
    raise NotBuilt(f"KUBEBUILDER_ASSETS, {assets}, has no {name}")


def _built(program: Program) -> str:
    if program.kept.program.exists():
        return str(program.kept.program)
    targets = {"apiserver": "kubernetes", "objects": "objects", "collector": "collector"}
    target = next((targets[group] for group in targets if program in GROUPS[group]), "kubernetes-node")
    raise NotBuilt(f"{program.kept} is missing; `make {target}` builds it")
