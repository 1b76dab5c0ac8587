"""Sender and receivers on a faulty network: no certain message is lost or duplicated (rqp_cast.md 4, 5).

A failure prints its random seed.
"""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from protos.rqp_cast import Result
from tests.protos.rqp_cast_network import Network

seeds = st.integers(0, 1 << 32)
MESSAGES = 6
STEPS = 20_000  # more than the longest way to an outcome takes
CRASHES = 0.02  # of each, at each step
DOWN_S = [0.0, 1.0, 40.0, 3 * 3600.0, 22 * 3600.0]


def misbehave(network: Network, steps: int) -> None:
    """Run so many steps, in which agents crash now and then."""
    random = network.world.random
    for _ in range(steps):
        if not network.step():
            return
        if random.random() < CRASHES:
            network.sender.crash(random.choice(DOWN_S))
        for receiver in network.receivers.values():
            if random.random() < CRASHES:
                receiver.crash()


def settle(network: Network) -> None:
    """End all faults, and run until the queue is empty."""
    network.world.trouble = 0.0
    for _ in range(STEPS):
        if not network.step():
            break
    assert network.sender.queue == []


def check(network: Network, messages: int) -> Counter[str]:
    """Check that each message has one outcome and is stored at most once; return the outcomes."""
    sender, inserted = network.sender, network.inserted()
    ends: Counter[str] = Counter()
    for number in range(1, messages + 1):
        assert inserted[b"uncertain %d" % number] <= 1  # at most once
        body = b"certain %d" % number
        buried, held = ([each.body for each in place].count(body) for place in (sender.buried, sender.held))
        assert sender.removed[body] + buried + held == 1
        if sender.removed[body]:
            assert inserted[body] == 1  # exactly once
        else:
            assert inserted[body] <= 1
        ends.update({"removed": sender.removed[body], "buried": buried, "held": held})
    for entry in sender.buried:
        assert entry.message.kept.failures == 20
    return ends


@pytest.mark.parametrize("duplicate_result", Result)
def test_on_a_good_network_each_message_arrives_once(duplicate_result: Result) -> None:
    network = Network(Random(1), 0.0, duplicate_result)
    network.put(MESSAGES)
    settle(network)
    assert check(network, MESSAGES) == Counter(removed=MESSAGES)
    assert network.inserted() == Counter(
        [
            b"%b %d" % (kind, number)
            for kind in (b"certain", b"uncertain")
            for number in range(1, MESSAGES + 1)
        ]
    )


def test_certain_messages_follow_each_other_without_a_wait() -> None:
    """Check that certain messages follow each other without a wait: the queue is free in time (3.5).

    An uncertain message has no answer to wait for, and its question may be too early.
    """
    network = Network(Random(1), 0.0, Result.FAILURE)
    network.put(MESSAGES, uncertain=False)
    settle(network)
    assert list(network.inserted()) == [b"certain %d" % number for number in range(1, MESSAGES + 1)]
    assert network.world.now < 2.0 * MESSAGES


@settings(max_examples=50, deadline=None)
@given(seeds, st.sampled_from([0.02, 0.1, 0.3]), st.sampled_from(Result))
def test_on_a_bad_one_nothing_certain_is_lost_or_doubled(
    seed: int, trouble: float, duplicate_result: Result
) -> None:
    network = Network(Random(seed), trouble, duplicate_result)
    network.put(MESSAGES)
    misbehave(network, 600)
    settle(network)
    check(network, MESSAGES)


def test_all_ends_are_met_and_nothing_is_buried_that_a_receiver_may_confirm_twice() -> None:
    """Check that all outcomes occur, and none is buried that a receiver may confirm twice.

    The fault rates are high enough to bury and to hold; `duplicate_result: success` needs no burials (5.4).
    """
    ends: dict[Result, Counter[str]] = {result: Counter() for result in Result}
    for duplicate_result, counted in ends.items():
        for seed in range(30):
            network = Network(Random(seed), 0.1, duplicate_result)
            network.put(MESSAGES)
            misbehave(network, 600)
            settle(network)
            counted += check(network, MESSAGES)
    assert ends[Result.FAILURE]["buried"] > 0
    assert ends[Result.FAILURE]["held"] > 0
    assert ends[Result.SUCCESS]["buried"] == 0
