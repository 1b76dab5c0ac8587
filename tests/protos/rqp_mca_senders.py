"""Helpers of the sending side's tests: senders brought to a state, all of it at time 0."""

from protos.rqp_mca import (
    AvailableConfirm,
    DataConfirm,
    MessageType,
    QueueConfirm,
    Sender,
    SenderSettings,
    State,
)

QUEUE = 7
RELIABLE, UNRELIABLE = MessageType
AVAILABLE, YOURS, CONFIRM = AvailableConfirm(QUEUE), QueueConfirm(QUEUE), DataConfirm(1)


def idle(*peers: str, window: int = 1) -> Sender:
    """Return an idle sender that knows these receiving MCAs."""
    sender = Sender(QUEUE, SenderSettings())
    assert sender.peers_changed(dict.fromkeys(peers, window), 0.0) == []
    return sender


def asking(*peers: str, kind: MessageType = RELIABLE, count: int = 1, window: int = 1) -> Sender:
    """Return a sender that has asked all peers for availability; until 2.0."""
    sender = idle(*peers, window=window)
    sender.put(kind, count, 0.0)
    assert (sender.state, sender.deadline()) == (State.AWAITING_QUEUE_REQUEST, 2.0)
    return sender


def requesting(*peers: str, kind: MessageType = RELIABLE, count: int = 1, window: int = 1) -> Sender:
    """Return a sender that has asked the first peer to reserve the queue, which all have; until 2.0."""
    sender = asking(*peers, kind=kind, count=count, window=window)
    for peer in peers:
        sender.received(peer, AVAILABLE, 0.0)
    assert (sender.state, sender.deadline()) == (State.AWAITING_QUEUE, 2.0)
    return sender


def sending(*peers: str, count: int = 1, window: int = 1) -> Sender:
    """Return a sender with a full window of RELIABLE messages in flight to the first peer; until 10.0."""
    sender = requesting(*peers, count=count, window=window)
    sender.received(peers[0], YOURS, 0.0)
    assert (sender.state, sender.deadline()) == (State.AWAITING_MESSAGE, 10.0)
    assert (sender.receiver, sender.unconfirmed) == (peers[0], min(count, window))
    return sender


def settled(*peers: str, window: int = 1) -> Sender:
    """Return an idle sender to which the first peer is the known receiver."""
    sender = sending(*peers, window=window)
    sender.received(peers[0], CONFIRM, 0.0)
    assert (sender.state, sender.receiver, sender.deadline()) == (State.IDLE, peers[0], None)
    return sender


def stopped(*peers: str) -> Sender:
    """Return a sender stopped from 2.0 to 3.0, as no receiver has the queue of its RELIABLE message."""
    sender = asking(*peers)
    sender.on_time(2.0)
    assert (sender.state, sender.deadline()) == (State.STOPPED, 3.0)
    return sender
