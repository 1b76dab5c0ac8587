"""Write the dashboards: python -m tools.dashboards charts/penstock/files/dashboards."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tools.dashboards.analytics import ANALYTICS
from tools.dashboards.board import Board, document
from tools.dashboards.dead import DEAD
from tools.dashboards.edge import EDGE
from tools.dashboards.overview import OVERVIEW
from tools.dashboards.queue import QUEUE

BOARDS = (OVERVIEW, EDGE, QUEUE, DEAD, ANALYTICS)


def text(board: Board) -> str:
    """Return a dashboard's file."""
    return json.dumps(document(board), indent=1) + "\n"


def main(folder: Path) -> None:
    """Write all dashboards to the folder."""
    for board in BOARDS:
        (folder / f"{board.name}.json").write_text(text(board), "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
