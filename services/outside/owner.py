"""Decide which users' files a process trusts."""

from __future__ import annotations

import os


def is_trusted(owner: int) -> bool:
    """Return whether files of that uid are trusted: a process trusts its own and root's; root trusts all."""
    return os.geteuid() in (0, owner) or owner == 0
