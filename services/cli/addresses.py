"""Whether what is to be served can listen where the settings say, before anything else is begun."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

from services.kit.acceptor import bind
from services.kit.layers import SettingsError

Place = tuple[str, str, int]  # the setting of the port, host, port


def check_places(places: Iterable[Place]) -> None:
    """Raises SettingsError for an address that cannot be had; a name that is to be looked up is left to who listens."""
    for setting, host, port in places:
        if not _is_address(host):
            continue
        try:
            bind(host, port, reuse_port=False).close()
        except SettingsError as error:
            advice = f"another `penstock up` or `serve` may run there: end it, or change {setting}"
            raise SettingsError([f"{error}; {advice}"]) from None


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
