"""Check a caller's role."""

from __future__ import annotations

from services.console.access.identity import Caller
from services.console.contract.problems import Problem
from services.console.contract.roles import Role


def check_role(caller: Caller, needed: Role | None) -> None:
    """Raise Problem 403 for a caller without a role, or with a role lower than `needed`."""
    if caller.role is None:
        text = f"user {caller.name!r} has no group with access: see console.proxy.roles"
        raise Problem(403, "forbidden", text)
    if needed is not None and not caller.role.may(needed):
        text = f"insufficient role: this requires {needed}, {caller.name} has {caller.role}"
        raise Problem(403, "forbidden", text)
