"""One client's connection: its requests become verbs of the log, and their outcomes replies, in order (pubsub.md)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import assert_never

from protos import pubsub
from protos.pubsub import Charset, Reason
from services.kit.session import Conversation, Inflow, InflowSession, Slot, Wire
from services.pubsub.service import PubsubService
from services.pubsub.settings import TextListener
from services.pubsub.subscriber import Subscriber, Subscription
from services.store import Source, StoreError
from services.store.log import parse_place
from services.store.model import (
    MessageTooLarge,
    OutcomeUnknown,
    QueueFull,
    QueuePaused,
    QueueReserved,
    QueueUnknown,
    Refusals,
)

RUN_PART = 32  # this many SENDs of a run are as much work as one request alone
COPIES = {  # why a queue did not take its copy (5.1)
    MessageTooLarge: "a queue that takes this tag leads to peers that take no message of this size",
    QueueFull: "a queue that takes this tag is full",
    QueuePaused: "a queue that takes this tag is paused",
    QueueReserved: "a queue that takes this tag is reserved",
    QueueUnknown: "a queue that takes this tag is being deleted",
}
OPERATIONS = {
    pubsub.Send: "send",
    pubsub.Subscribe: "subscribe",
    pubsub.Unsubscribe: "unsubscribe",
    pubsub.Ping: "ping",
    pubsub.Quit: "quit",
    pubsub.Refused: "refused",
}


def explain(error: StoreError) -> str:
    """What the client reads, whoever that is: the log has the rest."""
    return COPIES.get(type(error)) or error.outward


class TextSession(InflowSession[pubsub.Event, Conversation]):
    """The kit's `Session`, and the `Handler` of its own input."""

    __slots__ = ("_is_leaving", "_origin", "_service", "_source", "_subscriber")

    def __init__(self, service: PubsubService, listener: TextListener, wire: Wire) -> None:
        self._service = service
        conversation = Conversation(wire)
        parser = pubsub.Connection(service.settings.limits(listener))
        super().__init__(conversation, Inflow(conversation, parser, self))
        self._source = Source(service.store.client(wire.peer))
        self._origin = f"text {wire.peer.certificate or wire.peer.address}"
        self._is_leaving = False  # after a FIN its subscriptions end
        self._subscriber = Subscriber(wire, listener.charset is Charset.ASCII, self._line)

    # what the kit tells

    @property
    def buffered(self) -> int:
        """Unfinished input, and what a client has us remember: patterns may be as long as lines, and held replies."""
        return self._inflow.buffered + self._subscriber.octets + self._conversation.held_bytes

    def lost(self, reset: bool) -> None:
        self._conversation.is_lost = True
        self._inflow.lost()
        self._service.gone(self._subscriber)  # if it has not ended in order

    # what the subscriber tells

    def _line(self, begun: bool) -> None:
        """Replies wait for the end of a line that goes in pieces (3.5)."""
        if begun:
            self._conversation.held = True
            return
        self._conversation.write_held()
        self.end_if_done()  # now: nothing comes behind the last reply
        self._conversation.wire.soon(self._go_on)  # not now: who sends the line is still at work

    def _go_on(self) -> None:
        self._inflow.proceed()
        self.end_if_done()

    # what the input tells

    def handle(self, event: pubsub.Event) -> None:
        self._subscriber.crlf = event.eol == pubsub.CRLF
        slot = self._conversation.expect()
        match event:
            case pubsub.Send():
                self._send(slot, event)
            case pubsub.Subscribe():
                self._subscribe(slot, event)
            case pubsub.Unsubscribe():
                self._unsubscribe(slot, event)
            case pubsub.Ping():
                self._ok(slot, event)
            case pubsub.Quit():
                self._quit(slot, event)
            case pubsub.Refused():
                self._refuse(slot, event, event.reason)
            case _:
                assert_never(event)

    def work(self, event: pubsub.Event) -> int:
        return 1 + event.count // RUN_PART if isinstance(event, pubsub.Send) else 1

    def is_exclusive(self, event: pubsub.Event) -> bool:
        """Nothing must: everything that asks the store goes through one ordered pipe."""
        return False

    def end_if_done(self) -> None:
        """Closes once everything owed has been answered."""
        conversation, inflow = self._conversation, self._inflow
        if conversation.is_lost or inflow.pumping or conversation.answers or self._subscriber.unfinished:
            return
        if not (conversation.closing or conversation.drained or inflow.eof_parsed):
            return
        if not conversation.closing and inflow.is_waiting():
            return
        if inflow.eof_parsed and not conversation.closing and self._subscriber.by_identifier:
            self._leave()
            return
        if inflow.violation is not None:
            violation, inflow.violation = inflow.violation, None
            conversation.wire.refuse(violation.reason, violation.detail)
        conversation.wire.close()
        self._service.gone(self._subscriber)  # whatever else would come is not even looked for

    # replies

    def _reply(self, slot: Slot, reply: bytes, operation: str, good: int, total: int) -> None:
        conversation = self._conversation
        self._service.tally.count(operation, good, total, conversation.wire.loop_time() - slot.asked)
        conversation.fill(slot, reply)

    def _ok(self, slot: Slot, event: pubsub.Request) -> None:
        self._reply(slot, pubsub.encode_ok(event.eol), OPERATIONS[type(event)], 1, 1)

    def _error(self, slot: Slot, event: pubsub.Event, text: Reason | str) -> None:
        self._reply(slot, pubsub.encode_error(text, event.eol), OPERATIONS[type(event)], 0, 1)

    def _refuse(self, slot: Slot, event: pubsub.Event, reason: Reason) -> None:
        self._conversation.wire.refuse(reason.label)
        self._error(slot, event, reason)

    def _failed(self, slot: Slot, event: pubsub.Event, error: StoreError) -> None:
        """What cannot be learnt is not answered (3.1)."""
        if isinstance(error, OutcomeUnknown):
            if self._subscriber.unfinished:  # a line without its end must not look as if it were whole
                self._conversation.wire.abort()
            self._conversation.close_unanswered(error.reason, str(error))
            return
        self._conversation.wire.refuse(error.reason, str(error))
        self._error(slot, event, explain(error))

    # SEND

    def _send(self, slot: Slot, event: pubsub.Send) -> None:
        service = self._service
        done = partial(self._sent, slot, event)
        service.bridge.send(self._source, event.block, event.count, self._origin, done)
        if service.bridge.is_congested(self._source):
            self._inflow.hold_until_clear(service.bridge.when_clear)

    def _sent(self, slot: Slot, event: pubsub.Send, outcome: Refusals | StoreError) -> None:
        count, eol = event.count, event.eol
        if not outcome:
            self._reply(slot, pubsub.encode_ok(eol, count), "send", count, count)
        elif isinstance(outcome, StoreError):
            self._failed(slot, event, outcome)
        else:
            for _, error in outcome:
                self._conversation.wire.refuse(error.reason, str(error))
            why = dict(outcome)
            lines = [
                pubsub.encode_error(explain(why[index]), eol) if index in why else pubsub.encode_ok(eol)
                for index in range(count)
            ]
            self._reply(slot, b"".join(lines), "send", count - len(why), count)
        self._inflow.run_answered()

    # SUBSCRIBE

    def _subscribe(self, slot: Slot, event: pubsub.Subscribe) -> None:
        subscriber, service = self._subscriber, self._service
        known = subscriber.by_identifier
        if event.identifier in known:
            self._refuse(slot, event, Reason.IDENTIFIER_IN_USE)
        elif (most := self._room()) is not None:
            self._conversation.wire.refuse("too_many_subscriptions")
            self._error(slot, event, f"no more than {most} subscriptions here")
        else:
            pattern = event.pattern
            subscription = Subscription(subscriber, event.identifier, pattern.tag, pattern.is_prefix)
            known[event.identifier] = subscription
            subscriber.octets += len(event.identifier) + len(pattern.tag)
            service.subscriptions += 1
            service.log.head(self._source, partial(self._subscribed, slot, event, subscription))

    def _room(self) -> int | None:
        """The bound that one subscription more would exceed, or None."""
        settings = self._service.settings
        if len(self._subscriber.by_identifier) >= settings.max_subscriptions:
            return settings.max_subscriptions
        most = settings.max_subscriptions_in_all // settings.workers
        return most if self._service.subscriptions >= most else None

    def _forget(self, subscription: Subscription) -> None:
        del self._subscriber.by_identifier[subscription.identifier]
        self._subscriber.octets -= len(subscription.identifier) + len(subscription.tag)
        self._service.subscriptions -= 1

    def _subscribed(
        self, slot: Slot, event: pubsub.Subscribe, subscription: Subscription, place: str | StoreError
    ) -> None:
        """The moment of subscription is the end of the log as the store knew it after it was asked (3.2)."""
        known = self._subscriber.by_identifier
        is_wanted = known.get(event.identifier) is subscription and not self._conversation.is_lost
        if isinstance(place, StoreError):
            if is_wanted:
                self._forget(subscription)
            self._failed(slot, event, place)
        else:
            if is_wanted:
                self._service.subscribed(subscription, parse_place(place))
            self._ok(slot, event)
        self._inflow.run_answered()

    def _unsubscribe(self, slot: Slot, event: pubsub.Unsubscribe) -> None:
        subscription = self._subscriber.by_identifier.get(event.identifier)
        if subscription is None:
            self._refuse(slot, event, Reason.IDENTIFIER_UNKNOWN)
            return
        self._inflow.hold()  # its identifier is free once it has ended
        self._end_all(lambda: [subscription], partial(self._unsubscribed, slot, event, subscription))

    def _unsubscribed(
        self, slot: Slot, event: pubsub.Unsubscribe, subscription: Subscription, error: StoreError | None
    ) -> None:
        if error is not None:
            self._failed(slot, event, error)
        else:
            if self._subscriber.by_identifier.get(event.identifier) is subscription:
                self._forget(subscription)
                self._conversation.wire.reschedule()  # it is not held any more
                if subscription.since is not None:
                    self._service.unsubscribed(subscription)
            self._ok(slot, event)
        self._conversation.wire.soon(self._inflow.free)  # not now: who delivers is still at work

    # the end of subscriptions

    def _end_all(
        self, which: Callable[[], Iterable[Subscription]], done: Callable[[StoreError | None], None]
    ) -> None:
        """Deliver what the log holds by now to subscriptions, and nothing behind it. Then call `done` (3.2)."""

        def placed(place: str | StoreError) -> None:
            if self._conversation.is_lost:
                return
            if isinstance(place, StoreError):
                done(place)
                return
            ends = [subscription for subscription in which() if subscription.since is not None]
            self._service.endings.begin(self._subscriber, ends, parse_place(place), partial(done, None))

        self._service.log.head(self._source, placed)

    def _quit(self, slot: Slot, event: pubsub.Quit) -> None:
        self._conversation.closing = True
        if self._subscriber.by_identifier:
            self._end_all(self._subscriber.by_identifier.values, partial(self._has_quit, slot, event))
        else:
            self._ok(slot, event)

    def _has_quit(self, slot: Slot, event: pubsub.Quit, error: StoreError | None) -> None:
        if error is None:
            self._ok(slot, event)
        else:
            self._failed(slot, event, error)
        self.end_if_done()

    def _leave(self) -> None:
        """After a FIN: the peer may still read."""
        if not self._is_leaving:
            self._is_leaving = True
            self._end_all(self._subscriber.by_identifier.values, self._has_left)

    def _has_left(self, _: StoreError | None) -> None:
        self._conversation.closing = True
        self.end_if_done()
