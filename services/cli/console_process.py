"""The console as a child process of `penstock up`: it lives as edges do."""

from __future__ import annotations

from services.cli.edge_process import EdgeProcess


class ConsoleProcess(EdgeProcess):
    """`penstock console` with these arguments."""

    @property
    def url(self) -> str:
        """Once it has said where it listens."""
        (host, port), scheme = next(iter(self.places.values())), "https" if self.is_tls else "http"
        return f"{scheme}://[{host}]:{port}/" if ":" in host else f"{scheme}://{host}:{port}/"

    is_tls = False

    def _words(self) -> list[str]:
        return ["console"]
