"""`access` of queue documents: valid values, and contradictions to bindings (docs/operations.md)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError

from services.store import QueueDocument, QueueSpec
from services.store.model.access_lists import Access
from services.store.model.duration import STORED
from services.store.model.spec import to_document

SHOP = {"edges": ["tmq"], "peers": ["10.0.0.0/8", "fd00::7"], "certificates": ["spiffe://example.org/shop"]}


def read(spec: dict[str, Any]) -> QueueSpec:
    return QueueDocument.model_validate({"metadata": {"name": "orders"}, "spec": spec}).queue


def test_document_round_trips() -> None:
    spec = read({"access": SHOP})
    assert spec.access == Access(**SHOP)
    assert QueueDocument.model_validate(to_document("orders", spec)).queue == spec
    kept = spec.model_dump_json(by_alias=True, exclude_defaults=True)
    assert json.loads(kept) == {"access": SHOP}
    assert QueueSpec.model_validate_json(kept, context=STORED) == spec


def test_default_access_admits_every_client() -> None:
    assert read({}).access == Access()
    assert Access().admits_edge("tmq")
    assert not Access(edges=("rqp",)).admits_edge("tmq")


@pytest.mark.parametrize(
    ("access", "text"),
    [
        ({"edges": "tmq"}, "write a list"),
        ({"edges": ["TMQ"]}, "write an edge as the settings name it: tmq, rqp, ring, pubsub"),
        ({"peers": "10.0.0.7"}, "write a list"),
        ({"peers": ["shop.example.org"]}, "write an address or a network, as in 10.0.0.7, 10.0.0.0/8"),
        ({"peers": ["10.0.0.0/33"]}, "write an address or a network"),
        ({"peers": ["::ffff:10.0.0.7"]}, "write an address or a network"),
        ({"peers": ["10.0.0.7/8"]}, "10.0.0.0/8, not 10.0.0.7/8"),
        ({"certificates": [""]}, "a name in a certificate has 1 to 255 characters"),
        ({"certificates": ["x" * 256]}, "a name in a certificate has 1 to 255 characters"),
        ({"clients": []}, "Extra inputs are not permitted"),
    ],
)
def test_invalid_access_is_refused(access: dict[str, Any], text: str) -> None:
    with pytest.raises(ValidationError) as caught:
        read({"access": access})
    assert text in str(caught.value)


TEXT = {"text": {"subscribe": ["order.*"]}}
SHOWN = {"text": {"publish": "order.new"}}
INBOX = {"ring": {"inbox": 7}}


@pytest.mark.parametrize(
    ("bindings", "access", "text"),
    [
        (TEXT, {"peers": ["10.0.0.7"]}, "lines of the text service do not name their sender"),
        (SHOWN, {"certificates": ["shop"]}, "lines of the text service do not name their sender"),
        (INBOX, {"peers": ["10.0.0.7"]}, "ring nodes forward messages of others"),
        (INBOX, {"certificates": ["shop"]}, "ring nodes forward messages of others"),
        ({"rqpCast": {"key": 7}}, {"certificates": ["shop"]}, "RQP/cast has no TLS"),
        (TEXT, {"edges": ["tmq"]}, "bindings.text needs edge pubsub, which access.edges does not list"),
        (SHOWN, {"edges": ["tmq"]}, "bindings.text needs edge pubsub, which access.edges does not list"),
        (INBOX, {"edges": ["tmq"]}, "bindings.ring.inbox needs edge ring, which access.edges does not list"),
    ],
)
def test_access_that_contradicts_bindings_is_refused(
    bindings: dict[str, Any], access: dict[str, Any], text: str
) -> None:
    with pytest.raises(ValidationError) as caught:
        read({"bindings": bindings, "access": access})
    assert text in str(caught.value)


@pytest.mark.parametrize(
    ("bindings", "access"),
    [
        (TEXT, {"edges": ["pubsub", "tmq"]}),
        (INBOX, {"edges": ["ring"]}),
        # outgoing messages have no client: the document sets their destination
        ({"ring": {"outbox": 7}}, SHOP),
        ({"rqpMca": {"queueId": 7}}, SHOP),
    ],
)
def test_access_that_fits_bindings_is_accepted(bindings: dict[str, Any], access: dict[str, Any]) -> None:
    assert read({"bindings": bindings, "access": access}).access == Access(**access)
