"""List valid and invalid documents with their errors, for the models and a real API server alike."""

from __future__ import annotations

from typing import Any

Spec = dict[str, Any]


def mca(**spec: Any) -> Spec:
    return {"protocol": "rqp-mca", "addresses": ["10.0.0.7"], **spec}


def cast(**spec: Any) -> Spec:
    return {"protocol": "rqp-cast", "addresses": ["10.0.0.7"], **spec}


def leading(**remote: Any) -> Spec:
    return {"remote": {"protocol": "rqp-mca", "queueId": 7, **remote}}


def ring(**spec: Any) -> Spec:
    return {"protocol": "ring", "addresses": ["10.0.0.7"], **spec}


def text(**binding: Any) -> Spec:
    return {"bindings": {"text": binding}}


def inbox(**access: Any) -> Spec:
    return {"bindings": {"ring": {"inbox": 7}}, "access": access}


def redrive(source: str = "orders", **spec: Any) -> Spec:
    return {"source": source, **spec}


NO_DURATION = "write a duration as a whole number and ms, s, m, h or d, as in 30s"
NO_LEVEL = "an ack level is memory, fsync or replicated:<n>"
NO_ADDRESS = "write an address as host or host:port, as in 10.0.0.7:11311"
NO_NAME = "a peer's name has 1 to 255 characters other than spaces and commas"
NO_PATTERN = "a pattern is a tag, or the beginning of a tag followed by '*'"
NO_TAG = "a tag has 1 or more characters above 32 other than '*'"
NO_EDGE = "write an edge as the settings name it: tmq, rqp, ring, pubsub, sysv"
NO_NETWORK = "write an address or a network, as in 10.0.0.7, 10.0.0.0/8 or fd00::/8"
HOST_BITS = "a network has no host bits set: write 10.0.0.0/8, not 10.0.0.7/8"
NO_CERTIFICATE = "a name in a certificate has 1 to 255 characters"
TEXT_HAS_NO_CLIENT_IDENTITY = "access.peers and access.certificates cannot be enforced with bindings.text"
RING_HAS_NO_CLIENT_IDENTITY = (
    "access.peers and access.certificates cannot be enforced with bindings.ring.inbox"
)
TEXT_EDGE_EXCLUDED = "bindings.text needs edge pubsub, which access.edges does not list: add it there"
RING_EDGE_EXCLUDED = "bindings.ring.inbox needs edge ring, which access.edges does not list: add it there"
NEGATIVE = "should be greater than or equal to 0"
MUCH = "should be less than or equal to 9007199254740991"
WIDE = "should be less than or equal to 4294967295"
TEXT_AWAY = "bindings.text needs domain 'main', which holds the text service's log"
ROUND = "two systems could forward a message to each other for ever"

GOOD_QUEUES: list[Spec] = [
    {},
    {"queueName": "rings/7"},
    {"queueName": "Orders, of 2026 / \u0142\u00f3d\u017a", "domain": "eu_1.A-b"},
    {"maxLength": 0, "maxBytes": (1 << 53) - 1, "maxDeliveries": 0, "overflow": "dead_letter_oldest"},
    {"messageTTL": "0s", "visibilityTimeout": "1500ms", "deadLetter": {"maxLength": 0, "retention": "007d"}},
    {"messageTTL": "99999999d", "visibilityTimeout": "999999999999999ms"},
    {"ackLevel": "memory", "delivery": "at-most-once", "paused": True},
    {"ackLevel": "replicated:99", "deletionPolicy": "Retain"},
    text(subscribe=["order.*", "a", "\u0142*"], publish="all.orders"),
    text(publish="x" * 255),
    {"bindings": {"rqpMca": {"queueId": 0, "exclusive": False}, "rqpCast": {"key": 0xFFFF_FFFF}}},
    {"bindings": {"ring": {"inbox": 1, "outbox": 0xFFFF}}},
    {"bindings": {"ring": {"inbox": 7}, "rqpCast": {"key": 7, "duplicateResult": "success"}}},
    {"domain": "other", "bindings": {"text": {}}},
    leading(peers=["warehouse", "\u0142\u00f3d\u017a"], reliable=False, maxMessageBytes=1),
    {"remote": {"protocol": "rqp-cast", "key": 0}},
    {"remote": None, "bindings": {"rqpMca": {"queueId": None}}},
    *(
        {name: None}
        for name in ("queueName", "domain", "maxLength", "overflow", "messageTTL", "paused", "bindings")
    ),
    *({name: None} for name in ("deadLetter", "ackLevel", "delivery", "deletionPolicy", "access")),
    *({"access": {"edges": None, "peers": None}}, {"bindings": {"ring": None, "text": {"publish": None}}}),
    leading(key=None, peers=None, reliable=None, maxMessageBytes=None),
    leading() | text(publish="sent"),
    {
        "access": {
            "edges": ["tmq", "a-fifth"],
            "peers": ["10.0.0.7", "10.0.0.0/8", "0.0.0.0/0", "::1", "fd00::/8"],
        }
    },
    {
        "access": {
            "certificates": ["shop 7, \u0142\u00f3d\u017a", "shop.example.org", "spiffe://example.org/shop"]
        }
    },
    text(subscribe=["a"]) | {"access": {"edges": ["tmq", "pubsub"]}},
    inbox(edges=["ring"]),
    leading() | {"access": {"edges": ["tmq"], "peers": ["2001:DB8::7/128"], "certificates": ["shop"]}},
    {"bindings": {"ring": {"outbox": 7}}, "access": {"edges": ["tmq"], "peers": ["10.0.0.7/32"]}},
]
BAD_QUEUES: list[tuple[Spec, str]] = [
    *(({"maxLenght": value}, 'unknown field "spec.maxLenght"') for value in (5, None)),
    *(({"deadLetter": {"queue": "x"}}, 'unknown field "spec.deadLetter.queue"'),),
    *(({"remote": 5}, "must be of type object"), ({"bindings": []}, "must be of type object")),
    *(({"queueName": ""}, "at least 1"), ({"queueName": "x" * 256}, "may not be more than 255")),
    ({"queueName": "\u00e4" * 128}, "a queue's name must have 1 to 255 bytes"),
    *(({"domain": ""}, "at least 1"), ({"domain": "x" * 64}, "may not be more than 63")),
    ({"domain": "a}b"}, "a domain has 1 to 63 letters, digits, dots, dashes and underscores"),
    (
        {"domain": "registry"},
        "the domain 'registry' is reserved for the store's catalogue: choose another name",
    ),
    *(({name: -1}, NEGATIVE) for name in ("maxLength", "maxBytes", "maxDeliveries")),
    *(({name: 1 << 53}, MUCH) for name in ("maxLength", "maxBytes", "maxDeliveries")),
    *(({"maxLength": value}, "must be of type integer") for value in (1.5, True, "many")),
    *(({"deadLetter": {"maxLength": -1}}, NEGATIVE), ({"deadLetter": {"retention": "1y"}}, NO_DURATION)),
    *(({"messageTTL": value}, NO_DURATION) for value in ("", "30", "30 s", "-1s", "1.5s", "30S", "1m30s")),
    *(({"messageTTL": value}, NO_DURATION) for value in ("30s\n", "\u0663s", "999999999d")),
    *(({"visibilityTimeout": value}, "must be of type string") for value in (30, 1.5, True)),
    *(({"visibilityTimeout": value}, "0s would return messages") for value in ("0s", "000ms", "0d")),
    ({"queueName": "ring/7/x"}, "names that begin with ring/ are reserved for the queues of ring nodes"),
    *(({"queueName": name}, "no control characters") for name in ("a\nb", "a\n", "\ta", "a\x00", "\x7f")),
    *(({"ackLevel": value}, NO_LEVEL) for value in ("disk", "FSYNC", "replicated:0", "replicated:1 ")),
    *(({"overflow": "drop"}, '"reject", "dead_letter_oldest"'), ({"paused": "perhaps"}, "type boolean")),
    *(({"delivery": "once"}, "at-least-once"), ({"deletionPolicy": "Keep"}, "DeleteIfEmpty")),
    *((text(subscribe=[tag]), NO_PATTERN) for tag in ("", "*", "a b", "a*b", "a\n")),
    (text(subscribe="order.*"), "must be of type array"),
    (text(subscribe=["x" * 257]), "may not be more than 256"),
    (text(subscribe=["a"] * 101), "must have at most 100 items"),
    *((text(publish=tag), NO_TAG) for tag in ("a*", "a b", " ", "a\x00")),
    (text(publish="x" * 256), "may not be more than 255"),
    ({"domain": "other"} | text(publish="a"), TEXT_AWAY),
    ({"domain": "other"} | text(subscribe=["a"]), TEXT_AWAY),
    ({"bindings": {"rqpMca": {"queueId": -1}}}, NEGATIVE),
    ({"bindings": {"rqpCast": {"key": 1 << 32}}}, WIDE),
    ({"bindings": {"rqpCast": {"duplicateResult": "maybe"}}}, '"failure", "success"'),
    ({"bindings": {"ring": {"inbox": 0}}}, "should be greater than or equal to 1"),
    ({"bindings": {"ring": {"outbox": 65536}}}, "should be less than or equal to 65535"),
    ({"bindings": {"ring": {"inbox": 7, "outbox": 7}}}, "messages would loop; choose two groups"),
    *((leading() | {"bindings": {"rqpMca": {"queueId": 1}}}, ROUND),),
    *((leading() | {"bindings": {"rqpCast": {"key": 1}}}, ROUND),),
    *((leading() | {"bindings": {"ring": {end: 1}}}, ROUND) for end in ("inbox", "outbox")),
    ({"remote": {}}, "spec.remote.protocol: Required value"),
    *((leading(peers=[None]), "must be of type string"), (leading(protocol=None), "spec.remote.protocol")),
    ({"remote": {"protocol": "tmq"}}, '"rqp-mca", "rqp-cast"'),
    ({"remote": {"protocol": "rqp-mca"}}, "protocol rqp-mca needs queueId, the number of the remote queue"),
    ({"remote": {"protocol": "rqp-cast"}}, "protocol rqp-cast needs key, the number of the remote queue"),
    (leading(maxMessageBytes=(15 << 20) + 1), "maxMessageBytes is at most 15728640 for protocol rqp-mca"),
    (leading(key=7), "key does not apply to protocol rqp-mca: remove it"),
    (leading(protocol="rqp-cast", key=7), "queueId does not apply to protocol rqp-cast: remove it"),
    (leading(queueId=1 << 32), WIDE),
    *((leading(peers=[name]), NO_NAME) for name in ("", "a b", "a,b", "a\u2003b", "a\u00a0", "\x85")),
    *((leading(peers="warehouse"), "must be of type array"), (leading(peers=["x"] * 1001), "at most 1000")),
    (leading(peers=["x" * 256]), "may not be more than 255"),
    (leading(maxMessageBytes=0), "should be greater than or equal to 1"),
    (leading(maxMessageBytes=1 << 24), "should be less than or equal to 16777215"),
    *(({"access": {name: "tmq"}}, "must be of type array") for name in ("edges", "peers", "certificates")),
    *(({"access": {"edges": [name]}}, NO_EDGE) for name in ("", "TMQ", "a b", "7", "-a", "tmq\n")),
    *(
        ({"access": {"peers": [where]}}, NO_NETWORK)
        for where in ("", "shop", "10.0.0", "10.0.0.7/33", "::/129")
    ),
    *(
        ({"access": {"peers": [where]}}, NO_NETWORK)
        for where in ("10.0.0.0/08", "10.0.0.0/255.0.0.0", "[::1]")
    ),
    *(
        ({"access": {"peers": [where]}}, NO_NETWORK)
        for where in ("::ffff:10.0.0.7", "fe80::1%eth0", "10.0.0.7:1")
    ),
    *(({"access": {"peers": [where]}}, HOST_BITS) for where in ("10.0.0.7/8", "fd00::1/8")),
    *(({"access": {"certificates": [name]}}, NO_CERTIFICATE) for name in ("", "a\n", "\x7f")),
    *(({"access": {"certificates": ["x" * 256]}}, "may not be more than 255"),),
    *(({"access": {"edges": ["x" * 64]}}, "may not be more than 63"),),
    *(({"access": {"peers": ["1" * 50]}}, "may not be more than 49"),),
    *(
        ({"access": {"edges": ["tmq"] * 21}}, "at most 20"),
        ({"access": {"peers": ["::1"] * 201}}, "at most 200"),
    ),
    ({"access": {"users": []}}, 'unknown field "spec.access.users"'),
    (text(subscribe=["a"]) | {"access": {"peers": ["10.0.0.7"]}}, TEXT_HAS_NO_CLIENT_IDENTITY),
    (text(publish="a") | {"access": {"certificates": ["shop"]}}, TEXT_HAS_NO_CLIENT_IDENTITY),
    *(
        (text(**binding) | {"access": {"edges": ["tmq"]}}, TEXT_EDGE_EXCLUDED)
        for binding in ({"publish": "a"},)
    ),
    *(
        (text(**binding) | {"access": {"edges": ["tmq"]}}, TEXT_EDGE_EXCLUDED)
        for binding in ({"subscribe": ["a"]},)
    ),
    (inbox(peers=["10.0.0.7"]), RING_HAS_NO_CLIENT_IDENTITY),
    (inbox(certificates=["shop"]), RING_HAS_NO_CLIENT_IDENTITY),
    (inbox(edges=["tmq"]), RING_EDGE_EXCLUDED),
    (
        {"bindings": {"rqpCast": {"key": 7}}, "access": {"certificates": ["shop"]}},
        "access.certificates cannot be enforced with bindings.rqpCast.key: RQP/cast has no TLS",
    ),
]
GOOD_PEERS: list[Spec] = [
    mca(),
    mca(addresses=["mq.example.org:11311", "[::1]:1", "[2001:db8::7]", "a_b:65535"]),
    mca(
        addresses=["0.0.0.7:1", "223.255.255.255", "_a-1.b.", "1.2.3.4.example.org", "7", "x" * 63, "a--b:7"]
    ),
    mca(profile="word", window=1000),
    *(mca(profile=None, omitAddress=None), cast(window=None, decline=None)),
    cast(omitAddress=True, trustAddress=True, duplicateResult="success", decline=False),
    ring(addresses=["10.0.0.7", "depot.example.org:8083", "[fd00::7]:8083"]),
    {"protocol": "text", "addresses": ["text.example.org", "[::1]:7172"]},
]
BAD_PEERS: list[tuple[Spec, str]] = [
    ({"addresses": ["a"]}, "spec.protocol: Required value"),
    ({"protocol": "rqp-mca"}, "spec.addresses: Required value"),
    *((mca(addresses=None), "spec.addresses"), (mca(protocol=None), "spec.protocol")),
    ({"protocol": "tmq", "addresses": ["a"]}, '"rqp-mca", "rqp-cast", "ring", "text"'),
    *((mca(addresses=[]), "at least 1 items"), (mca(addresses="10.0.0.7"), "must be of type array")),
    (mca(addresses=["a"] * 1001), "must have at most 1000 items"),
    *((mca(addresses=[where]), NO_ADDRESS) for where in ("", "a b", "a:", "a:0", "a:65536", "a:07", "::1")),
    *(
        (mca(addresses=[where]), NO_ADDRESS)
        for where in ("-", "...", ".a", "a..b", "-a", "a-:7", "a.-b", ".")
    ),
    (mca(addresses=["x" * 64 + ".org"]), NO_ADDRESS),
    *(
        (mca(addresses=["10.0.0.7", where]), "four numbers must be an IPv4 address, as in 10.0.0.7")
        for where in ("999.999.1.1", "10.0.0.256:11311", "010.0.0.7", "10.0.0.7.", "1.2.3.4444444444")
    ),
    *((mca(addresses=[where]), "must be an IPv6 address") for where in ("[]", "[10.0.0.7]", "[::g]:1")),
    (mca(addresses=["x" * 261]), "may not be more than 260"),
    *((mca(profile="nibble"), '"packed", "octet", "word"'), (mca(tls=True), 'unknown field "spec.tls"')),
    *((mca(window=0), "greater than or equal to 1"), (mca(window=1001), "less than or equal to 1000")),
    (mca(omitAddress=False), "omitAddress applies to protocol rqp-cast only: remove it"),
    (mca(trustAddress=True), "trustAddress applies to protocol rqp-cast only: remove it"),
    (mca(duplicateResult="failure"), "duplicateResult applies to protocol rqp-cast only: remove it"),
    (mca(decline=True), "decline applies to protocol rqp-cast only: remove it"),
    (cast(window=1), "window applies to protocol rqp-mca only: remove it"),
    (cast(profile="packed"), "profile applies to protocol rqp-mca only: remove it"),
    (ring(window=1), "window applies to protocol rqp-mca only: remove it"),
    (
        {"protocol": "text", "addresses": ["a"], "decline": True},
        "decline applies to protocol rqp-cast only: remove it",
    ),
    (cast(addresses=["10.0.0.8", "[::1]"]), "rqp-cast supports IPv4 addresses only"),
    *(
        (
            {"protocol": protocol, "addresses": ["10.0.0.8", many]},
            "it cannot be a broadcast, multicast or wildcard address",
        )
        for protocol, many in (
            ("rqp-mca", "255.255.255.255:11311"),
            ("rqp-cast", "255.255.255.255"),
            ("rqp-cast", "127.255.255.255"),
            ("rqp-cast", "0.0.0.0"),
            ("rqp-mca", "[::]:11311"),
            ("text", "239.1.2.3"),
            ("rqp-mca", "[ff02::1]:11311"),
        )
    ),
]
ONLY_THE_MODEL_REFUSES = [
    # files are not deleted as resources are, so the policy would have no effect
    *(("Queue", {"deletionPolicy": policy}) for policy in ("DeleteIfEmpty", "Delete")),
]
ONLY_THE_SERVER_REFUSES = [
    # the command line has numbers and switches as text, and converts them
    *(("Queue", {"maxLength": "5"}), ("Queue", {"paused": "yes"}), ("Redrive", redrive(dryRun="true"))),
    # Kubernetes supports neither zones of an address nor IPv4 within IPv6
    *(("Peer", mca(addresses=[where])) for where in ("[fe80::1%eth0]", "[::ffff:10.0.0.7]")),
]
CHANGES: list[tuple[Spec, Spec, str]] = [
    ({}, {"domain": "other"}, "domain cannot be changed"),
    ({"domain": "other"}, {}, "domain cannot be changed"),
    ({}, {"queueName": "two"}, "queueName cannot be changed"),
    ({"queueName": "two"}, {"queueName": "three"}, "queueName cannot be changed"),
    ({"queueName": "two"}, {}, "queueName cannot be changed"),
    ({}, {"queueName": "one"}, ""),  # its previous name
    ({"queueName": "two"}, {"queueName": "two", "maxLength": 5}, ""),
]

GOOD_REDRIVES: list[Spec] = [
    redrive(),
    redrive(target="other", rate=1_000_000, dryRun=True),
    redrive(filter={"reasons": ["refused", "max_deliveries"], "olderThan": "10m", "origin": "tmq"}),
    redrive("\u017c" * 127),
    redrive(target=None, filter=None, rate=None, dryRun=None),
    redrive(filter={"reasons": None, "olderThan": None, "origin": None}),
]
BAD_REDRIVES: list[tuple[Spec, str]] = [
    ({}, "spec.source"),
    *((redrive(""), "spec.source"), ({"source": None}, "spec.source")),
    (redrive("\u017c" * 128), "a queue's name must have 1 to 255 bytes"),
    (redrive(target="\u017c" * 128), "a queue's name must have 1 to 255 bytes"),
    (redrive("a\n"), "no control characters"),
    (redrive(target="\x00"), "no control characters"),
    (redrive(rate=0), "spec.rate"),
    (redrive(rate=1_000_001), "spec.rate"),
    (redrive(filter={"reasons": ["Too Late"]}), "a reason consists of lower-case letters"),
    (redrive(filter={"reasons": ["refused"] * 51}), "spec.filter.reasons"),
    (redrive(filter={"olderThan": "10"}), NO_DURATION),
    (redrive(filter={"origin": "x" * 256}), "spec.filter.origin"),
    (redrive(body="x"), 'unknown field "spec.body"'),
]

DOCUMENTS = [
    *(("Redrive", spec, "") for spec in GOOD_REDRIVES),
    *(("Redrive", spec, says) for spec, says in BAD_REDRIVES),
    *(("Queue", spec, "") for spec in GOOD_QUEUES),
    *(("Queue", spec, says) for spec, says in BAD_QUEUES),
    *(("Peer", spec, "") for spec in GOOD_PEERS),
    *(("Peer", spec, says) for spec, says in BAD_PEERS),
]
