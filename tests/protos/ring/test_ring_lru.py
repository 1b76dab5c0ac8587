"""A bounded memory (ring.md 5.5)."""

from protos.ring.lru import MAX_MARKED, ExpiringSet, LruMap


def test_least_recently_used_entry_is_evicted():
    recent: LruMap[int] = LruMap(3)
    for number in range(3):
        recent.put(b"%d" % number, number)
    assert recent.get(b"0") == 0
    recent.put(b"3", 3)
    assert [recent.get(b"%d" % number) for number in range(4)] == [0, None, 2, 3]
    recent.put(b"0", 7)
    recent.put(b"4", 4)
    assert [recent.get(b"%d" % number) for number in range(5)] == [7, None, None, 3, 4]
    assert len(recent) == 3


def test_a_false_value_is_a_value_too():
    recent: LruMap[bool] = LruMap(2)
    recent.put(b"one", False)
    recent.put(b"two", False)
    assert recent.get(b"one") is False
    recent.put(b"three", True)
    assert recent.get(b"two") is None
    assert recent.pop(b"one") is False
    assert recent.pop(b"one") is None


def test_expiring_set_member_expires_and_can_be_renewed():  # ring.md 3.6, 4.6
    marked = ExpiringSet(for_s=30.0)
    marked.mark(b"one", 0.0)
    marked.mark(b"two", 1.0)
    marked.mark(b"one", 10.0)
    assert [marked.has(name, 30.9) for name in (b"one", b"two", b"three")] == [True, True, False]
    assert [marked.has(name, 31.0) for name in (b"one", b"two")] == [True, False]
    assert not marked.has(b"one", 40.0)


def test_expiring_set_evicts_its_oldest_member():  # ring.md 3.6, 4.6
    marked = ExpiringSet(for_s=30.0)
    for number in range(10 * MAX_MARKED):
        marked.mark(b"%d" % number, 0.0)
        marked.mark(b"again", 0.0)
    assert len(marked) == MAX_MARKED
    assert marked.has(b"again", 1.0)
    assert marked.has(b"%d" % (10 * MAX_MARKED - 1), 1.0)
    assert not marked.has(b"0", 1.0)
