"""Warn about changes to what a Kubernetes resource declares: its operator reconciles the store with the resource."""

from __future__ import annotations

from services.cli.terminal.output import Output
from services.cli.terminal.text import printable
from services.store.model import OF_A_RESOURCE, is_of_a_resource

OVERRIDDEN = "its operator undoes this change within a minute; change the resource instead"
RECREATED = (
    "its operator creates the queue again within a minute, without its messages; delete the resource instead"
)
NOT_RESTORED = "its operator does not restore purged messages"


def warn_of_resource(output: Output, what: str, name: str, owner: str, consequence: str) -> None:
    """Warn on standard error if a Kubernetes resource owns it. what: 'queue' or 'peer'."""
    if is_of_a_resource(owner):
        resource = owner.removeprefix(f"{OF_A_RESOURCE} ")
        output.note(
            f"warning: {what} {printable(name)} belongs to the Kubernetes resource {printable(resource)}: {consequence}"
        )
