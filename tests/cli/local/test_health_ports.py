"""Test that ports of health pages skip ports that settings use for something else."""

from __future__ import annotations

import pytest

from services.cli.local.health_ports import health_ports
from services.kit.config import HealthSettings, SettingsError
from services.kit.edge import edges

OTHERS = [
    ("127.0.0.1", 9164, "console.port"),
    ("127.0.0.1", 0, "--store-port"),
    ("10.0.0.1", 9165, "elsewhere"),
]


def ports(first: int) -> list[int]:
    """Return the health ports of three edges and the console; one edge has a listener on 9162."""
    fields = {"pubsub": {"text": {"port": 9162}}, "rqp": {}, "tmq": {}}
    found = {
        name: edges()[name].settings.model_validate({"listeners": listeners})
        for name, listeners in fields.items()
    }
    return health_ports(HealthSettings(port=first), found, OTHERS)


def test_health_ports_skip_configured_ports() -> None:
    assert ports(9161) == [9161, 9163, 9165, 9166]
    assert ports(0) == [0, 0, 0, 0]


@pytest.mark.parametrize(
    ("first", "text"),
    [
        (9162, "edges.pubsub.listeners.text.port also uses port 9162: change one of them"),
        (65_534, "only 2 are free"),
    ],
)
def test_invalid_first_health_port_is_refused(first: int, text: str) -> None:
    with pytest.raises(SettingsError, match=text):
        ports(first)
