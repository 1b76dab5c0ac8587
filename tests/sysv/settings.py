"""Build mappings as in settings."""

from __future__ import annotations

from typing import Any


def mapping(direction: str, key: int, queue: str, **more: Any) -> dict[str, Any]:
    return {"direction": direction, "key": key, "queue": queue, **more}
