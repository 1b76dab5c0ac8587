"""Delay the store's answers until a test releases them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from tests.rqp.live import LiveEdge


def hold_answers(edge: LiveEdge) -> tuple[list[Callable[[], None]], Callable[[], None]]:
    """Delay answers of the domain `main` to publishers until the returned function is called."""
    pipe = edge.service.store.open_domain("main").pipe
    publish, waiting = pipe.messages.publish, list[Callable[[], None]]()

    def publish_held(*arguments: Any, **named: Any) -> None:
        *before, done = arguments
        publish(*before, lambda outcome: waiting.append(partial(done, outcome)), **named)

    def let_go() -> None:
        pipe.messages.publish = publish  # type: ignore[method-assign]
        for answer in waiting:
            answer()

    pipe.messages.publish = publish_held  # type: ignore[method-assign]
    return waiting, let_go
