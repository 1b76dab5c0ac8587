"""Check that the role of a caller is enough for a request."""

from __future__ import annotations

from services.console.access.identity import Caller
from services.console.contract.problems import Problem
from services.console.contract.roles import Role


def check_role(who: Caller, needed: Role | None) -> None:
    """Raise Problem 403 for a caller without a role, or with one that may not what `needed` may."""
    if who.role is None:
        text = f"none of the groups of {who.who!r} may come in: see console.proxy.roles"
        raise Problem(403, "forbidden", text)
    if needed is not None and not who.role.may(needed):
        text = f"this needs the role {needed}, and {who.who} has {who.role}"
        raise Problem(403, "forbidden", text)
