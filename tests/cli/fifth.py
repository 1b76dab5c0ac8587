"""Provide an edge of another package: the kit's echo edge with another name and its own flags."""

from __future__ import annotations

from pathlib import Path

EDGE = """
from services.kit.edge import Edge
from services.kit.config.flags import Flag
from tests.kit.echo_edge import EchoSettings, start

FLAGS = (
    Flag("--cousin", "neighbours", "HOST:PORT", "whom to call", repeatable=True),
    Flag("--frame-timeout", "frame_timeout_s", "SECONDS", "how long a frame may take"),
)
EDGE = Edge("fifth", EchoSettings, start, lambda settings: ["nc localhost 5555"], FLAGS)
"""
FIND = "import services\nservices.__path__.append({folder!r})\n"  # a new process reads it first


def create(folder: Path) -> None:
    """Create the edge in `folder`, which must be in Python's path."""
    package = folder / "found" / "fifth"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "edge.py").write_text(EDGE)
    (folder / "sitecustomize.py").write_text(FIND.format(folder=str(folder / "found")))
