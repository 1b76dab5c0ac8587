"""Matching of tags and subscriptions (pubsub.md 2), compared with a linear search."""

import random
import sys
import tracemalloc
from collections import Counter

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from services.pubsub.router import Router
from services.pubsub.trie import Many, Node, Nothing, Trie

Subscription = tuple[bytes, bool, int]  # tag, whether it is a prefix, item
Step = tuple[bool, Subscription]  # True: added; False: removed, if present

SUBSCRIPTIONS = 5_000  # enough for representative figures
LONGEST_TAG = b"a" * (64 << 10)  # a line has no room for more (pubsub.md 1.2)

tags = st.lists(st.sampled_from(b"ab\xff"), min_size=1, max_size=6).map(bytes)  # few, so that they collide
steps = st.lists(st.tuples(st.booleans(), st.tuples(tags, st.booleans(), st.integers(0, 3))), max_size=60)


def matches(subscription: Subscription, tag: bytes) -> bool:
    pattern, is_prefix, _ = subscription
    return tag.startswith(pattern) if is_prefix else tag == pattern


def take(router: Router[int], model: Counter[Subscription], step: Step) -> None:
    is_added, subscription = step
    if is_added:
        router.add(*subscription)
        model[subscription] += 1
    elif model[subscription]:
        router.remove(*subscription)
        model[subscription] -= 1
    else:
        with pytest.raises(KeyError):
            router.remove(*subscription)


@given(steps, st.lists(tags, min_size=1, max_size=5))
@example([(True, (b"ab", True, 1)), (True, (b"ab", True, 1)), (False, (b"ab", True, 1))], [b"ab", b"abc"])
@example(
    [(True, (b"aab", True, 1)), (True, (b"aba", True, 2)), (True, (b"a", True, 3))], [b"a", b"ab", b"aba"]
)
def test_match_equals_a_linear_search(given_steps: list[Step], asked: list[bytes]) -> None:
    """Check that a match equals a linear search: exact patterns and prefixes (pubsub.md 2)."""
    router: Router[int] = Router()
    model: Counter[Subscription] = Counter()
    for step in given_steps:
        take(router, model, step)
        for tag in (*asked, step[1][0]):
            expected = [one[2] for one in model.elements() if matches(one, tag)]
            assert sorted(router.match(tag)) == sorted(expected)
        assert len(router) == model.total()


def test_prefix_matches_itself_and_longer_tags() -> None:
    """Check that a prefix matches itself and longer tags: `abc*` is every tag that begins with abc (pubsub.md 2)."""
    router: Router[str] = Router()
    router.add(b"abc", True, "prefix")
    router.add(b"abc", False, "exact")
    assert sorted(router.match(b"abc")) == ["exact", "prefix"]
    assert router.match(b"abcd") == router.match(b"abc*") == ["prefix"]
    assert router.match(b"ab") == router.match(b"abd") == router.match(b"xabc") == []


def test_removing_a_prefix_keeps_the_exact_pattern() -> None:
    """Check that removing a prefix keeps the exact pattern: `abc` and `abc*` are two patterns (pubsub.md 2)."""
    router: Router[str] = Router()
    router.add(b"abc", False, "exact")
    with pytest.raises(KeyError):
        router.remove(b"abc", True, "exact")
    router.add(b"abc", True, "prefix")
    router.remove(b"abc", True, "prefix")
    assert router.match(b"abc") == ["exact"]


@pytest.mark.parametrize("is_prefix", [False, True])
def test_item_added_twice_is_found_twice_and_removed_once(is_prefix: bool) -> None:
    router: Router[None] = Router()  # None is an item like any other
    router.add(b"tag", is_prefix, None)
    router.add(b"tag", is_prefix, None)
    assert router.match(b"tag") == [None, None]
    router.remove(b"tag", is_prefix, None)
    assert (router.match(b"tag"), len(router)) == ([None], 1)
    router.remove(b"tag", is_prefix, None)
    assert (router.match(b"tag"), len(router)) == ([], 0)


@pytest.mark.parametrize("is_prefix", [False, True])
def test_very_many_subscribers_of_one_tag_come_and_go(is_prefix: bool) -> None:
    """Check that subscribers of one tag are added and removed in constant time; else this test would time out."""
    router: Router[int] = Router()
    everybody = range(50_000)
    for item in everybody:
        router.add(b"news", is_prefix, item)
    assert sorted(router.match(b"news")) == list(everybody)
    for item in everybody:
        router.remove(b"news", is_prefix, item)
    assert router.match(b"news") == []


def test_removed_subscribers_cost_nothing() -> None:
    """Check that removed subscribers cost nothing.

    A dict keeps its largest size: a match would iterate over the places of removed subscribers.
    """
    many: Many[int] = Many()
    for item in range(20_000):
        many.add(item)
    for item in range(19_990):
        many.remove(item)
    assert list(many) == list(range(19_990, 20_000))
    assert sys.getsizeof(many) < 10_000


def nodes(trie: Trie[int]) -> dict[bytes, Node[int]]:
    """Return every node but the root, by its whole prefix."""
    waiting, found = [(b"", trie.root)], {}
    while waiting:
        prefix, node = waiting.pop()
        for first, child in (node.children or {}).items():
            assert first == child.label[0]
            found[prefix + child.label] = child
            waiting.append((prefix + child.label, child))
    return found


def assert_has_no_idle_part(trie: Trie[int], model: Counter[tuple[bytes, int]]) -> None:
    """Check that there is a node for each prefix and branch, and that a single item has no container."""
    found = nodes(trie)
    assert {prefix for prefix, node in found.items() if node.held is not Nothing.HELD} == {
        prefix for prefix, _ in model.elements()
    }
    for node in found.values():
        assert node.children is None or node.children
        assert node.held is not Nothing.HELD or len(node.children or ()) >= 2
        assert not isinstance(node.held, Many) or node.held.total >= 2


@given(steps)
@example([(True, (b"ab", True, 0)), (True, (b"aa", True, 0)), (False, (b"aa", True, 0))])
@example([(True, (b"a", True, 0)), (True, (b"ab", True, 0)), (False, (b"a", True, 0))])
def test_removal_leaves_only_nodes_that_are_needed(given_steps: list[Step]) -> None:
    trie: Trie[int] = Trie()
    model: Counter[tuple[bytes, int]] = Counter()
    for is_added, (prefix, _, item) in given_steps:
        if is_added:
            trie.add(prefix, item)
            model[prefix, item] += 1
        elif model[prefix, item]:
            trie.remove(prefix, item)
            model[prefix, item] -= 1
        assert_has_no_idle_part(trie, model)
    for prefix, item in list(model.elements()):
        trie.remove(prefix, item)
    assert (nodes(trie), trie.root.children) == ({}, None)


def test_the_empty_prefix_is_matched_by_everything() -> None:
    """Check that the empty prefix is matched by everything.

    No pattern is empty (pubsub.md 2.1), but a trie has a place for it.
    """
    trie: Trie[int] = Trie()
    trie.add(b"", 1)
    trie.add(b"a", 2)
    found: list[int] = []
    trie.match(b"a", found)
    trie.match(b"", found)
    trie.remove(b"", 1)
    trie.match(b"a", found)
    assert found == [1, 2, 1, 2]


def test_a_trie_as_deep_as_a_tag_is_long() -> None:
    """Check a trie as deep as a tag of 64 KiB (pubsub.md 1.2): nothing recurses, not even freeing its nodes."""
    router: Router[int] = Router()
    depths = range(8, len(LONGEST_TAG) + 1, 8)
    for depth in reversed(depths):
        router.add(LONGEST_TAG[:depth], True, depth)
    assert router.match(LONGEST_TAG) == list(depths)
    assert router.match(LONGEST_TAG[:100] + b"b") == list(range(8, 101, 8))
    for depth in depths[: len(depths) // 2]:
        router.remove(LONGEST_TAG[:depth], True, depth)
    assert len(router.match(LONGEST_TAG)) == len(depths) // 2
    del router


def test_long_prefixes_part_at_any_byte() -> None:
    router: Router[int] = Router()
    for place in (0, 1, 1000, len(LONGEST_TAG) - 1):
        router.add(LONGEST_TAG[:place] + b"b" + LONGEST_TAG[place + 1 :], True, place)
    router.add(LONGEST_TAG, True, -1)
    assert router.match(LONGEST_TAG + b"a") == [-1]
    assert router.match(LONGEST_TAG[:1000] + b"b" + LONGEST_TAG[1001:]) == [1000]


@pytest.mark.parametrize(("is_prefix", "limit"), [(False, 300), (True, 700)])
def test_memory_for_a_subscription_and_after_it(is_prefix: bool, limit: int) -> None:
    """Check the memory of a subscription and after it, in octets, with the pattern's bytes."""
    chance = random.Random(1)
    patterns = list({bytes(chance.choices(b"ab", k=20)) for _ in range(SUBSCRIPTIONS)})
    tracemalloc.start()
    try:
        router: Router[None] = Router()
        for pattern in patterns:
            router.add(pattern[:-1] + pattern[-1:], is_prefix, None)
        used = tracemalloc.get_traced_memory()[0]
        for pattern in patterns:
            router.remove(pattern, is_prefix, None)
        left = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert used < limit * len(patterns)
    assert left < 100_000
