"""Count how often an output is accessed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from services.analytics.files import Files

REQUESTS = ("exists", "list", "read_octets", "write_octets", "move", "delete")


@contextmanager
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """Count accesses by method inside the block."""
    found: Counter[str] = Counter()

    def counting(name: str) -> Callable[..., Any]:
        method = getattr(Files, name)

        def asked(self: Files, *told: Any) -> Any:
            found[name] += 1
            return method(self, *told)

        return asked

    with monkeypatch.context() as patched:
        for name in REQUESTS:
            patched.setattr(Files, name, counting(name))
        yield found
