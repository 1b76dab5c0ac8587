"""Places where slow consumers continue, and entries cached for them (pubsub.md 3.6)."""

from __future__ import annotations

import pytest

from services.pubsub import read_cache
from services.pubsub.backlogs import Backlogs
from services.pubsub.catchup import TURN_RUNS, CatchUp, Overrun
from services.pubsub.read_cache import IDLE_S, ReadCache
from services.pubsub.recent_entries import RecentEntries
from services.pubsub.render import LongLine
from services.pubsub.subscriber import Subscriber, Subscription
from services.pubsub.subscription_table import STEP
from services.store.log.log import Entry, Place
from tests.pubsub.fake_wire import FakeWire, entry, subscribe


class Laggard:
    def __init__(self, *since: int) -> None:
        """Start at the log's beginning, with a subscription made at each of these serials."""
        self.number = 0
        self.paper = FakeWire()
        self.subscriber = Subscriber(self.paper, True)  # type: ignore[arg-type]
        self.catch_up = CatchUp(self.subscriber, None, Place(1, 0), Backlogs(8 << 20, 128 << 20), LongLine())
        self.made = [self.subscribe(serial) for serial in since]

    def unsubscribe(self, made: Subscription) -> None:
        del self.subscriber.by_identifier[made.identifier]
        self.catch_up.table.remove(made)

    def subscribe(self, since: int) -> Subscription:
        self.number += 1
        made = subscribe(self.subscriber, b"%d" % self.number, Place(1, since), self.number)
        self.catch_up.table.add(made)
        return made


class TestWhatIsLost:
    @pytest.mark.parametrize("since", [0, 5])
    def test_overrun_depends_on_the_first_subscription(self, since: int) -> None:
        with pytest.raises(Overrun):
            Laggard(since, 8).catch_up.take([entry(1, 7)], Place(1, 7))

    @pytest.mark.parametrize("trimmed_all", [False, True])
    def test_trimming_before_the_first_subscription_is_no_overrun(self, trimmed_all: bool) -> None:
        """Check that trimming before the first subscription is no overrun.

        Behind at 0, then UNSUBSCRIBE, and SUBSCRIBE again at 8: the trimmed messages were not subscribed.
        """
        laggard = Laggard(0)
        laggard.unsubscribe(laggard.made[0])
        laggard.subscribe(8)
        if trimmed_all:
            laggard.catch_up.take([], Place(1, 8))
            assert laggard.catch_up.place == Place(1, 8)
        laggard.catch_up.take(
            [entry(1, serial) for serial in range(9 if trimmed_all else 7, 11)], Place(1, 10)
        )
        assert b"".join(laggard.paper.written) == b"MESSAGE 2 m9\nMESSAGE 2 m10\n"
        assert laggard.catch_up.place == Place(1, 10)

    def test_overrun_is_detected_in_an_empty_log(self) -> None:
        with pytest.raises(Overrun):
            Laggard(3).catch_up.take([], Place(1, 8))


class TestWithinALine:
    """A line of 300,000 octets, of which one turn sends a part."""

    def test_line_is_aborted_when_data_goes_back_in_time(self) -> None:
        """Check that a line is aborted when data goes back in time: entries of a new era must not complete it."""
        laggard = Laggard(0)
        laggard.catch_up.take([long_entry(1, 1)], Place(1, 1))
        assert laggard.catch_up.is_within_a_line
        with pytest.raises(Overrun):
            laggard.catch_up.take([long_entry(2, 1)], Place(2, 1))

    def test_line_is_aborted_when_the_log_ends_before_it(self) -> None:
        laggard = Laggard(0)
        laggard.catch_up.take([long_entry(1, 1)], Place(1, 1))
        with pytest.raises(Overrun):
            laggard.catch_up.take([], Place(1, 0))

    def test_rest_of_a_line_is_sent_in_the_next_turns(self) -> None:
        laggard = Laggard(0)
        while laggard.catch_up.place != Place(1, 1):
            assert laggard.catch_up.take([long_entry(1, 1)], Place(1, 1))
        assert len(laggard.paper.written) > 2
        assert b"".join(laggard.paper.written) == b"MESSAGE 1 " + b"y" * 300_000 + b"\n"


def long_entry(era: int, serial: int) -> Entry:
    return Entry(Place(era, serial), 1, b"s i", serial, False, b"SEND t " + b"y" * 300_000 + b"\n")


class TestRecent:
    def test_finds_entries_across_eras(self) -> None:
        """Check that entries are found across eras.

        An era ends after 1 MiB: the first entry of the next one follows the last place of the one before.
        """
        recent = RecentEntries()
        recent.add([entry(2, 6)], Place(1, 5))
        assert recent.after(Place(1, 5)) == [entry(2, 6)]

    def test_returns_none_before_its_first_entry(self) -> None:
        recent = RecentEntries()
        recent.add([entry(2, 6)], Place(1, 5))
        assert recent.after(Place(1, 4)) is None


class TestReadings:
    def test_entries_survive_a_long_round(self) -> None:
        kept, whose = ReadCache(), Laggard(0).catch_up
        kept.keep(whose, [entry(1, 1)], 0.0)
        kept.next_round(IDLE_S * 50)
        assert kept.after(whose, IDLE_S * 50) == [entry(1, 1)]
        kept.next_round(IDLE_S * 100)
        assert kept.octets

    def test_entries_are_dropped_if_unused_for_long(self) -> None:
        kept, whose = ReadCache(), Laggard(0).catch_up
        kept.keep(whose, [entry(1, 1)], 0.0)
        for _ in range(5):
            kept.next_round(IDLE_S / 2)
        assert kept.octets
        kept.next_round(IDLE_S)
        assert not kept.octets
        assert kept.after(whose, IDLE_S) == []

    def test_used_entries_outlive_unused_ones(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(read_cache, "IDLE_S", 0.0)
        kept, used, idle = ReadCache(), Laggard(0).catch_up, Laggard(0).catch_up
        for whose in (used, idle):
            kept.keep(whose, [entry(1, 1)], 0.0)
        for _ in range(3):
            assert kept.after(used, 0.0)
            kept.next_round(0.0)
        assert not kept.after(idle, 0.0)


class TestVeryManySubscriptions:
    """Many subscriptions of one connection: its table is filled step by step, and others are served in between."""

    def behind(self) -> tuple[FakeWire, Subscriber, CatchUp]:
        paper = FakeWire()
        subscriber = Subscriber(paper, True)  # type: ignore[arg-type]
        for number in range(1, 2 * STEP + 2):
            made = subscribe(subscriber, b"i%d" % number, Place(1, 0), number)
            made.tag = b"t" if number in (5, 1700) else b"idle.%d" % number
        return (
            paper,
            subscriber,
            CatchUp(subscriber, None, Place(1, 0), Backlogs(8 << 20, 128 << 20), LongLine()),
        )

    def test_subscriptions_get_their_messages_in_order(self) -> None:
        paper, _, catch_up = self.behind()
        assert [catch_up.table.fill(), catch_up.table.fill()] == [False, True]
        catch_up.take([entry(1, 2, 2)], Place(1, 2))
        assert b"".join(paper.written) == b"".join(
            b"MESSAGE %b m%d\n" % (identifier, serial)
            for serial in (1, 2)
            for identifier in (b"i5", b"i1700")
        )

    def test_subscriptions_may_change_while_the_table_is_filled(self) -> None:
        paper, subscriber, catch_up = self.behind()
        for identifier in (b"i5", b"i1700"):  # one of them is in the table already, the other is not
            catch_up.table.remove(subscriber.by_identifier.pop(identifier))
        catch_up.table.add(subscribe(subscriber, b"new", Place(1, 1), 9_999))
        while not catch_up.table.fill():
            pass
        catch_up.take([entry(1, 1), entry(1, 2)], Place(1, 2))
        assert b"".join(paper.written) == b"MESSAGE new m2\n"

    def test_turn_is_bounded_without_matches(self) -> None:
        catch_up = Laggard(0).catch_up
        lines = b"".join(b"SEND a%d x\n" % (number % 2) for number in range(TURN_RUNS + 10))
        long = Entry(Place(1, TURN_RUNS + 10), TURN_RUNS + 10, b"s i", 1, False, lines)
        assert catch_up.take([long], long.place)
        assert catch_up.place == Place(1, TURN_RUNS)
        assert catch_up.take([long], long.place)
        assert catch_up.place == long.place
