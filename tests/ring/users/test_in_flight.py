"""Messages in flight are matched with queue entries by content: each is sent as often as it is stored (ring.md 4.5)."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from services.ring.node.outgoing.in_flight import InFlight
from services.ring.node.outgoing.stored_message import ORPHAN, StoredMessage


class NoKeeper:
    def acknowledged(self, outgoing_message: StoredMessage) -> None: ...

    def returned(self, outgoing_message: StoredMessage) -> None: ...


LIFE = 1
# payload, whether it was begun here
MESSAGES = st.tuples(st.sampled_from([b"ping", b"pong", b"a", b"b"]), st.booleans())
Message = tuple[bytes, bool]


def outgoing_messages(*messages: Message) -> list[StoredMessage]:
    return [StoredMessage(NoKeeper(), LIFE, payload, is_begun) for payload, is_begun in messages]


def message(outgoing_message: StoredMessage) -> Message:
    return outgoing_message.stored, outgoing_message.is_begun


def shown(in_flight: InFlight, *messages: Message) -> list[Message]:
    """Return the messages that are to be sent now."""
    return [each for each in messages if in_flight.shown(*each) is None]


@given(st.lists(st.tuples(MESSAGES, st.booleans())), st.data())
def test_equal_messages_are_sent_as_often_as_stored(
    puts: list[tuple[Message, bool]], data: st.DataObject
) -> None:
    """Check that equal messages are sent as often as they are stored, in any order of the queue's entries.

    Some leave early, and some belong to other writers.
    """
    in_flight = InFlight()
    early = [each for each, is_early in puts if is_early]
    for each in early:
        in_flight.leave(outgoing_messages(each))
    queue = data.draw(st.permutations([each for each, _ in puts]))
    assert Counter(early + shown(in_flight, *queue)) == Counter(queue)
    assert len(in_flight) == 0


@given(st.lists(MESSAGES), st.lists(MESSAGES), st.data())
def test_equal_messages_are_settled_one_by_one(
    early: list[Message], others: list[Message], data: st.DataObject
) -> None:
    """Check that each parcel is matched once with an equal message; of equal ones the oldest first."""
    in_flight = InFlight()
    left = outgoing_messages(*early)
    in_flight.leave(left)
    found: list[StoredMessage] = []
    for each in data.draw(st.permutations(early + others)):
        outgoing_message = in_flight.shown(*each)
        if outgoing_message is not None:
            assert message(outgoing_message) == each
            found.append(outgoing_message)
    assert set(found) == set(left)
    assert len(found) == len(left)
    for each in set(early):
        assert [p for p in found if message(p) == each] == [p for p in left if message(p) == each]


def test_empty_poll_drops_messages_taken_elsewhere() -> None:
    """Check that an empty poll drops messages stored before it, which were taken elsewhere.

    Messages still being stored appear later; those already shown are kept.
    """
    in_flight = InFlight()
    taken, found, _ = left = outgoing_messages((b"a", True), (b"b", True), (b"c", True))
    in_flight.leave(left)
    taken.is_safe = found.is_safe = True
    safe = in_flight.safe()
    assert safe == {taken, found}
    assert in_flight.shown(b"b", True) is found
    in_flight.are_gone(safe)
    assert [outgoing_message.generation for outgoing_message in left] == [ORPHAN, LIFE, LIFE]
    assert shown(in_flight, (b"a", True), (b"c", True)) == [(b"a", True)]


def test_refused_write_resends_all_stored_messages() -> None:
    in_flight = InFlight()
    left = outgoing_messages((b"a", False), (b"b", False))
    in_flight.leave(left)
    in_flight.orphan()
    assert [outgoing_message.generation for outgoing_message in left] == [ORPHAN, ORPHAN]
    assert shown(in_flight, (b"a", False)) == [(b"a", False)]
