"""A text edge in its own process, with time-outs short enough to expire during a test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.faults.process import EdgeProcess
from tests.servers import free_port

LINK = {"beat_s": 0.3, "silence_s": 2.0, "reconnect_s": 0.5, "lease_s": 1.5}
WAITS = {"patience_s": 1.0, "reply_timeout_s": 1.5, "call_deadline_s": 3.0}
REQUEST_TIMEOUT_S = 6.0


class TextEdge(EdgeProcess):
    """A text edge. `link` overrides settings of links; `neighbours` are `host:port` of other edges' links."""

    def __init__(
        self,
        name: str,
        directory: Path,
        store_url: str,
        neighbours: Sequence[str] = (),
        link: Mapping[str, Any] | None = None,
    ) -> None:
        self.port, self.link_port = free_port(), free_port()
        listeners = {"text": {"port": self.port}, "link": {"port": self.link_port, "serves": "links"}}
        settings = {
            "listeners": listeners,
            "neighbours": list(neighbours),
            "request_timeout_s": REQUEST_TIMEOUT_S,
            "subscriber_bytes": 64 << 10,
            "store": WAITS,
            "link": {**LINK, **(link or {})},
        }
        super().__init__(name, directory, store_url, "pubsub", settings)

    @property
    def link_address(self) -> str:
        return f"127.0.0.1:{self.link_port}"
