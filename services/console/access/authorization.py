"""Check that a caller's role is sufficient for a request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from services.console.contract.problems import Problem
from services.console.contract.roles import Role


@dataclass(frozen=True, slots=True)
class Caller:
    """An identified client."""

    name: str  # "": not authenticated
    role: Role | None  # None: not authenticated, or no group with access
    auth: str  # token or proxy
    address: str  # see Identities.address

    def document(self) -> dict[str, Any]:
        """Return the caller as the API shows it."""
        return {"who": self.name, "role": self.role, "auth": self.auth}

    def check_role(self, needed: Role | None) -> None:
        """Raise Problem 403 without a role, or with a role lower than `needed`."""
        if self.role is None:
            text = f"user {self.name!r} has no group with access: see console.proxy.roles"
        elif needed is not None and not self.role.may(needed):
            text = f"insufficient role: this requires {needed}, {self.name} has {self.role}"
        else:
            return
        raise Problem(403, "forbidden", text)
