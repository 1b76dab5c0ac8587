"""What the queue shows is recognised wherever it stands: each message is sent as often as it is there (ring.md 4.5)."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from services.ring.node.outgoing.parcels import ORPHAN, Stored
from services.ring.node.outgoing.underway import Underway


class Nobody:
    def acknowledged(self, parcel: Stored) -> None: ...

    def returned(self, parcel: Stored) -> None: ...


LIFE = 1
MESSAGES = st.tuples(st.sampled_from([b"ping", b"pong", b"a", b"b"]), st.booleans())  # payload, is it begun
Message = tuple[bytes, bool]


def parcels(*messages: Message) -> list[Stored]:
    return [Stored(Nobody(), LIFE, payload, is_begun) for payload, is_begun in messages]


def message(parcel: Stored) -> Message:
    return parcel.stored, parcel.is_begun


def shown(underway: Underway, *messages: Message) -> list[Message]:
    """Those that are to be sent now."""
    return [each for each in messages if underway.shown(*each) is None]


@given(st.lists(st.tuples(MESSAGES, st.booleans())), st.data())
def test_each_is_sent_as_often_as_it_is_in_the_queue(
    puts: list[tuple[Message, bool]], data: st.DataObject
) -> None:
    """Some leave early, some are others'; and the queue shows them in whatever order."""
    underway = Underway()
    early = [each for each, is_early in puts if is_early]
    for each in early:
        underway.leave(parcels(each))
    queue = data.draw(st.permutations([each for each, _ in puts]))
    assert Counter(early + shown(underway, *queue)) == Counter(queue)
    assert len(underway) == 0


@given(st.lists(MESSAGES), st.lists(MESSAGES), st.data())
def test_none_is_settled_for_another(
    early: list[Message], others: list[Message], data: st.DataObject
) -> None:
    """Each parcel is found once, by a message that says the same; of equal ones the oldest first."""
    underway = Underway()
    left = parcels(*early)
    underway.leave(left)
    found: list[Stored] = []
    for each in data.draw(st.permutations(early + others)):
        parcel = underway.shown(*each)
        if parcel is not None:
            assert message(parcel) == each
            found.append(parcel)
    assert set(found) == set(left)
    assert len(found) == len(left)
    for each in set(early):
        assert [p for p in found if message(p) == each] == [p for p in left if message(p) == each]


def test_who_looks_for_more_and_finds_none_knows_which_are_gone() -> None:
    """Those that were stored by then: what is still being put in comes later, and what was shown is there."""
    underway = Underway()
    taken, found, _ = left = parcels((b"a", True), (b"b", True), (b"c", True))
    underway.leave(left)
    taken.is_safe = found.is_safe = True
    safe = underway.safe()
    assert safe == {taken, found}
    assert underway.shown(b"b", True) is found
    underway.are_gone(safe)
    assert [parcel.life for parcel in left] == [ORPHAN, LIFE, LIFE]
    assert shown(underway, (b"a", True), (b"c", True)) == [(b"a", True)]


def test_after_a_refusal_all_that_is_shown_is_sent() -> None:
    underway = Underway()
    left = parcels((b"a", False), (b"b", False))
    underway.leave(left)
    underway.orphan()
    assert [parcel.life for parcel in left] == [ORPHAN, ORPHAN]
    assert shown(underway, (b"a", False)) == [(b"a", False)]
