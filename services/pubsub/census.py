"""What the text service says when somebody asks it through the store: who subscribes to what."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from services.kit.metrics import Item
from services.kit.net import count_argument, describe_peer
from services.pubsub.subscriber import Subscriber, Subscription

TOPIC = "subscriptions"
SHOWN = 256  # octets of a pattern, and of an identifier: they may be as long as lines


def subscriptions(subscribers: Iterable[Subscriber], args: Mapping[str, Any]) -> Iterator[Item]:
    """Of a `connection`, by its name in the log, or of all, in the order in which they began; without the first `skip`.

    subscribers: those that there are now. They may go while this is read.
    """
    skip, wanted = count_argument(args, "skip"), args.get("connection")
    return _told([each for each in subscribers if wanted in (None, each.wire.conn)], skip)


def _told(subscribers: list[Subscriber], skip: int) -> Iterator[Item]:
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
