"""CoreDNS on the node's address; it resolves only names of Services and pods, as the machine is isolated."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.node.health import says_ok
from tests.e2e.node.machine import ADDRESS
from tests.e2e.node.place import Place
from tests.kubernetes.daemon import Daemon
from tools.kubernetes.programs import find

READY_PORT = 8181
# short TTL, as cached names are wrong after a Service or a pod is deleted
COREFILE = """\
.:53 {{
    bind {address}
    errors
    ready 127.0.0.1:{port}
    kubernetes cluster.local in-addr.arpa {{
        kubeconfig {kubeconfig}
        ttl 1
    }}
}}
"""


class Names:
    def __init__(self, place: Place, kubeconfig: Path) -> None:
        corefile = place.folder / "Corefile"
        corefile.write_text(COREFILE.format(address=ADDRESS, port=READY_PORT, kubeconfig=kubeconfig), "utf-8")
        self.daemon = Daemon(find("coredns"), ["-conf", str(corefile)], place.folder)

    def start(self) -> None:
        self.daemon.start(lambda: says_ok(f"http://127.0.0.1:{READY_PORT}/ready"))
