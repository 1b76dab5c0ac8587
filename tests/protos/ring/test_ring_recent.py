"""A memory with an end (ring.md 5.5)."""

from protos.ring.recent import Recent


def test_what_was_not_used_for_longest_is_forgotten_first():
    recent: Recent[int] = Recent(3)
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
    recent: Recent[bool] = Recent(2)
    recent.put(b"one", False)
    recent.put(b"two", False)
    assert recent.get(b"one") is False
    recent.put(b"three", True)
    assert recent.get(b"two") is None
    assert recent.pop(b"one") is False
    assert recent.pop(b"one") is None
