"""List open subscriptions for requests through the store (docs/operations.md, Who is connected)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from services.kit.metrics import Item
from services.kit.net import count_argument, describe_peer
from services.pubsub.subscriber import Subscriber, Subscription

TOPIC = "subscriptions"
SHOWN = 256  # octets shown of patterns and identifiers, which may be as long as lines


def subscriptions(subscribers: Iterable[Subscriber], args: Mapping[str, Any]) -> Iterator[Item]:
    """Yield the subscriptions of a `connection`, named as in the log, or of all, without the first `skip`.

    subscribers: in the order in which they began. Some may disconnect while the result is read.
    """
    skip, wanted = count_argument(args, "skip"), args.get("connection")
    return _listed([each for each in subscribers if wanted in (None, each.wire.conn)], skip)


def _listed(subscribers: list[Subscriber], skip: int) -> Iterator[Item]:
    for subscriber in subscribers:
        known = subscriber.by_identifier
        if skip >= len(known):
            skip -= len(known)
            continue
        those, skip = list(islice(known.values(), skip, None)), 0
        for subscription in those:
            yield _described(subscription)


def _described(subscription: Subscription) -> Item:
    subscriber = subscription.subscriber
    pattern = subscription.tag[:SHOWN] + (b"*" if subscription.is_prefix else b"")
    return {
        "connection": subscriber.wire.conn,
        **describe_peer(subscriber.wire.peer),
        "id": _text(subscription.identifier[:SHOWN]),
        "pattern": _text(pattern),
        "octets": len(subscription.tag) + subscription.is_prefix,
        "isBehind": subscriber.place is not None or subscription.is_late,
    }


def _text(octets: bytes) -> str:
    return octets.decode("utf-8", "backslashreplace")
