"""Settings of a node, and the errors for invalid ones (ring.md 1)."""

from __future__ import annotations

import re
from typing import Any

import pytest
from pydantic import ValidationError

from protos.ring import Frame, Open, Operation, Times, encode_beacon, encode_frame
from services.kit.config.layers import SettingsError
from services.kit.net.listener import ListenerSettings
from services.ring.node.identity import identify
from services.ring.node.settings import MAX_OWN_NAME, NodeSettings, parse_target


def test_default_times_are_those_of_the_spec() -> None:
    """Check that default times are those of the spec (2, 3, 4)."""
    assert NodeSettings().times.times() == Times()
    assert NodeSettings.model_validate({"times": {"open_s": 2}}).times.times() == Times(open_s=2.0)
    assert NodeSettings().dial.connect_timeout_s == 30.0


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"silence_s": 10}, "silence_s must be greater than idle_s, which is 10: else healthy links"),
        ({"idle_s": 31}, "silence_s must be greater than idle_s, which is 31"),
        ({"vain_s": 90}, "vain_s must be greater than own_ring_s and open_s together, which is 90"),
        ({"own_ring_s": 130}, "vain_s must be greater than own_ring_s and open_s together, which is 160"),
        ({"confirm_s": 60}, "confirm_s must be greater than find_s, which is 60: else healthy leaders"),
        ({"find_s": 200}, "confirm_s must be greater than find_s, which is 200"),
        ({"lost_s": 120}, "lost_s must be greater than twice vacant_s, which is 120"),
        ({"vacant_s": 150}, "lost_s must be greater than twice vacant_s, which is 300"),
        ({"absent_s": 300}, "absent_s must be greater than lost_s, which is 300"),
    ],
)
def test_times_that_contradict_each_other_are_refused(fields: dict[str, float], why: str) -> None:
    """Check that contradictory times are refused (1.4)."""
    with pytest.raises(ValidationError, match=why):
        NodeSettings.model_validate({"times": fields})
    (setting, value), (longer, *_) = *fields.items(), why.split()
    raised = {longer: value + 1} if longer == setting else {longer: 2 * value + 31}
    assert NodeSettings.model_validate({"times": {**fields, **raised}})


@pytest.mark.parametrize(
    ("fields", "listener", "name"),
    [
        ({}, "127.0.0.1", "127.0.0.1:8085"),
        ({"advertise": "node1.example.org"}, "0.0.0.0", "node1.example.org:8085"),
        ({"advertise": "node1"}, "::1", "node1:8085"),
        ({"name": "node1:x"}, "10.0.0.1", "node1:x"),
        ({"name": "node1:x"}, "0.0.0.0", "node1:x"),
        ({"name": "Node1:x", "advertise": "node1"}, "::1", "Node1:x"),
        ({"name": "node1", "advertise": "node1"}, "10.0.0.1", "node1"),
    ],
)
def test_default_node_name_is_host_and_port(fields: dict[str, Any], listener: str, name: str) -> None:
    """Check that the default node name is host and port (1.2)."""
    identity = identify(NodeSettings.model_validate(fields), ListenerSettings(host=listener, port=8085))
    assert identity.name == name.encode()
    assert identity.service == b"8085"
    assert identity.place == (name.partition(":")[0], 8085)
    identity.close()


@pytest.mark.parametrize(
    ("host", "why"),
    [
        ("0.0.0.0", "not an address that others can"),
        ("::", "not an address"),
        ("::1", "cannot hold the IPv6"),
    ],
)
def test_unreachable_listener_address_is_a_settings_error(host: str, why: str) -> None:
    with pytest.raises(SettingsError, match=rf"edges.ring.node.advertise: missing, as .*{why}"):
        identify(NodeSettings(), ListenerSettings(host=host, port=8085))


@pytest.mark.parametrize("port", [0, 8085])
def test_derived_name_over_the_limit_is_a_settings_error(port: int) -> None:
    """Check that a derived name above the limit is a settings error.

    1.2: the longest valid name fits twice into an OPEN, and into LOOPs.
    """
    listener = ListenerSettings(port=port)
    too_long = NodeSettings(advertise="a" * (MAX_OWN_NAME - (3 if port == 0 else 4)))
    with pytest.raises(
        SettingsError, match=r"edges.ring.node.advertise: too long: 23[1-9] octets .* at most 230"
    ):
        identify(too_long, listener)
    one = identify(NodeSettings(advertise="a" * (MAX_OWN_NAME - 6)), listener)
    assert encode_beacon(Open(1, one.name, one.name, b"65535"))
    assert encode_frame(Frame(Operation.PUSH, one.name, b"q"))
    one.close()


LOCAL = "127.255.255.255"
WIDE = {
    "broadcast": ["broadcast 10.0.0.255", {"broadcast": [LOCAL, "10.0.0.255"]}],
    "everybody": ["broadcast 255.255.255.255", {"broadcast": ["255.255.255.255"]}],
    "a target": ["beacon_targets 10.0.0.8", {"beacon_targets": ["node-a", "10.0.0.8:8083"]}],
    "a target over IPv6": ["beacon_targets fd00::7", {"beacon_targets": ["[fd00::7]:8083"]}],
    "a host": ["beacon_host 10.0.0.7", {"beacon_host": "10.0.0.7"}],
    "all hosts": ["beacon_host 0.0.0.0", {"beacon_host": "0.0.0.0"}],
    "all hosts, IPv6 too": ["beacon_host ::", {"beacon_host": "::"}],
    "all of it": ["broadcast 10.0.0.255", {"beacon_host": "0.0.0.0", "broadcast": ["10.0.0.255"]}],
}
NARROW: list[dict[str, Any]] = [
    {},
    {"beacon_host": "127.0.0.2"},
    {
        "broadcast": [],
        "beacon_host": "::1",
        "beacon_targets": ["[::1]:8083", "127.0.0.1", "::ffff:127.0.0.1"],
    },
    {"broadcast": [], "beacon_targets": ["node-a"]},
]


@pytest.mark.parametrize(("wide", "fields"), WIDE.values(), ids=list(WIDE))
@pytest.mark.parametrize(
    ("mine", "setting"),
    [
        ({}, "advertise"),
        ({"advertise": "127.0.0.1"}, "advertise"),
        ({"advertise": "127.1"}, "advertise"),
        ({"name": "127.0.0.7:x"}, "name"),
    ],
)
def test_loopback_name_with_wide_beacons_is_a_settings_error(
    mine: dict[str, Any], setting: str, wide: str, fields: dict[str, Any]
) -> None:
    """Check that a loopback name with wide beacons is a settings error: its ring would never close (1.3)."""
    why = rf"^edges\.ring\.node\.{setting}: other machines hear beacons .{re.escape(wide)}. and would .*; set it"
    with pytest.raises(SettingsError, match=why):
        identify(NodeSettings.model_validate({**mine, **fields}), ListenerSettings(port=8085))


@pytest.mark.parametrize(("_", "fields"), WIDE.values(), ids=list(WIDE))
@pytest.mark.parametrize(
    ("mine", "listener"),
    [
        ({}, "10.0.0.7"),
        ({"advertise": "10.0.0.7"}, "0.0.0.0"),
        ({"name": "10.0.0.7:x"}, "::"),
        ({"advertise": "localhost"}, "0.0.0.0"),
    ],
)
def test_reachable_names_are_accepted(
    mine: dict[str, Any], listener: str, _: str, fields: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    """Check that reachable names are accepted without being resolved (1.3)."""
    identify(NodeSettings.model_validate({**mine, **fields}), ListenerSettings(host=listener, port=8085))
    assert caplog.records == []


@pytest.mark.parametrize("fields", NARROW)
def test_loopback_is_allowed_within_one_machine(
    fields: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    """Check that loopback names are allowed within one machine (1.3)."""
    identify(NodeSettings.model_validate(fields), ListenerSettings(port=8085))
    assert caplog.records == []


@pytest.mark.parametrize(("_", "fields"), WIDE.values(), ids=list(WIDE))
def test_loopback_listener_with_wide_name_is_logged(
    _: str, fields: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    """Check that a loopback listener with a non-loopback name is logged (1.3)."""
    identify(NodeSettings.model_validate({"advertise": "10.0.0.7", **fields}), ListenerSettings(port=8085))
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert record.getMessage().startswith(
        "beacons announce 10.0.0.7, but edges.ring.listeners.ring.host is 127.0.0.1"
    )


def test_port_0_is_resolved_before_listening() -> None:
    one = identify(NodeSettings(), ListenerSettings(port=0))
    other = identify(NodeSettings(), ListenerSettings(port=0))
    assert one.listener.port != other.listener.port
    assert one.name == b"127.0.0.1:" + one.service
    one.close()
    other.close()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("10.0.0.7", ("10.0.0.7", None)),
        ("10.0.0.7:8083", ("10.0.0.7", 8083)),
        ("node.example.org:1", ("node.example.org", 1)),
        ("::1", ("::1", None)),
        ("[::1]", ("::1", None)),
        ("[fe80::1%eth0]:8083", ("fe80::1%eth0", 8083)),
    ],
)
def test_targets(text: str, found: tuple[str, int | None]) -> None:
    """Check how targets are parsed (3.4)."""
    assert parse_target(text) == found


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"group": 0}, "greater than or equal to 1"),
        ({"group": 65536}, "less than or equal to 65535"),
        ({"window": 65}, "less than or equal to 64"),
        ({"advertise": "::1"}, "for IPv6 use a name"),
        ({"advertise": "a b"}, "must be an IPv4 address or a name"),
        (
            {"advertise": "0.0.0.0"},
            "must be the address or name of one machine: others cannot connect to 0.0.0.0",
        ),
        ({"advertise": "0"}, "others cannot connect to 0"),
        ({"advertise": "255.255.255.255"}, "others cannot connect to 255.255.255.255"),
        ({"advertise": "224.0.0.1"}, "others cannot connect to 224.0.0.1"),
        ({"name": "0.0.0.0:1"}, "others cannot connect to 0.0.0.0"),
        ({"name": ":1"}, "must be graphic ASCII"),
        ({"name": "ü:1"}, "must be graphic ASCII"),
        ({"name": "x" * 231}, "at most 230 octets"),
        (
            {"name": "alpha", "advertise": "127.0.0.1"},
            "contradict each other: others connect to alpha, .*, never to 127.0.0.1; leave advertise out",
        ),
        ({"name": "10.0.0.70:x", "advertise": "10.0.0.7"}, "contradict each other"),
        ({"broadcast": ["::1"]}, "must be an IPv4 broadcast address"),
        ({"beacon_targets": ["a:b"]}, "must be host or host:port"),
        ({"beacon_targets": ["a:0"]}, "port from 1 to 65535"),
        ({"beacon_targets": ["a:65536"]}, "port from 1 to 65535"),
        ({"times": {"ack_s": 0}}, "greater than 0"),
        ({"times": {"ack_s": 0.49}}, "must be at least 0.5: an `A` takes two network trips"),
        ({"times": {"ack": 1}}, "Extra inputs"),
        ({"allow": ["10.0.0.7/8"]}, "must be a network"),
    ],
)
def test_invalid_settings_are_refused(fields: dict[str, Any], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        NodeSettings.model_validate(fields)
