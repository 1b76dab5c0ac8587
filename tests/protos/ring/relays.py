"""A ring of relays in memory: links keep order, break and send again; nodes die; some nodes are originals."""

from __future__ import annotations

from collections import Counter, deque

from protos.ring import (
    NO_ID,
    Answer,
    CameBack,
    Deliver,
    Drop,
    Frame,
    Operation,
    PassOn,
    Questions,
    Relay,
    Request,
    Route,
    Settle,
    TakenOff,
    encode_frame,
    parse_frame,
)


class Member:
    """The common part of all nodes of a ring: messages for its successor, some of them unanswered."""

    def __init__(self, name: bytes, serves: set[bytes]) -> None:
        self.name = name
        self.serves = serves
        self.outgoing: deque[bytes] = deque()
        self.unanswered = 0  # from the left: unanswered ones
        self.inbox: Counter[bytes] = Counter()
        self.began: Counter[bytes] = Counter()
        self.carried_out: list[Frame] = []
        self.answers: list[Frame] = []

    def put_on(self, payload: bytes) -> None:
        self.began[payload] += 1
        self.outgoing.append(payload)

    def take(self, payload: bytes, store_refuses: bool = False) -> bool:
        raise NotImplementedError

    def reply(self, request: Frame) -> Frame:
        self.carried_out.append(request)
        return Frame(Operation.OK, request.sender, request.queue, b"", request.request_id)


class Ours(Member):
    """A node of ours that carries out the decisions of its Relay."""

    def __init__(self, name: bytes, serves: set[bytes], max_laps: int) -> None:
        super().__init__(name, serves)
        self.relay = Relay(name, max_laps, remembered=1000, seed=b"one life")
        self.came_back: list[Frame] = []
        self.repeats: list[Frame] = []
        self.leases: set[bytes] = set()
        self.settled: list[bytes] = []
        self.dropped: Counter[str] = Counter()

    def put_on(self, payload: bytes) -> None:
        self.relay.put_on(payload)
        super().put_on(payload)

    def take(self, payload: bytes, store_refuses: bool = False) -> bool:
        """Take a message; return whether it is answered by `A`.

        It is not if the store was needed and refused (ring.md 4.7).
        """
        route = self.relay.route(payload)
        if store_refuses and isinstance(route, Request | Settle | PassOn | Deliver):
            return False
        self.carry_out(route, payload)
        return True

    def carry_out(self, route: Route, payload: bytes) -> None:
        match route:
            case Answer(frame):
                self.hear(frame)
            case CameBack(frame):
                self.came_back.append(frame)
            case Request(frame, _, again=True):
                self.repeats.append(frame)
                self.begin_reply(Frame(Operation.OK, frame.sender, frame.queue, b"", frame.request_id))
            case Request(frame) if frame.queue in self.serves:
                self.begin_reply(self.reply(frame))
                self.relay.served(frame)
                if frame.operation is Operation.PULL and frame.request_id != NO_ID:
                    self.leases.add(frame.request_id)
            case Settle(frame) if frame.request_id in self.leases:
                self.settled.append(frame.request_id)
                self.relay.served(frame)
            case Request(frame, questions) | PassOn(frame, questions):
                self.relay.passed(frame)
                self.pass_on(payload, questions)
            case Settle(frame):
                self.relay.passed(frame)
                self.pass_on(payload, Questions())
            case Deliver(body, questions):
                self.inbox[body] += 1
                self.pass_on(payload, questions)
            case Drop(why):
                self.dropped[why.value] += 1
            case TakenOff():
                pass

    def begin_reply(self, frame: Frame) -> None:
        payload = encode_frame(frame)
        self.relay.put_on(payload)
        self.outgoing.append(payload)

    def pass_on(self, payload: bytes, questions: Questions) -> None:
        self.outgoing += questions.with_between(payload)

    def hear(self, reply: Frame) -> None:
        is_new = reply.request_id not in {each.request_id for each in self.answers}
        self.answers.append(reply)
        asked = encode_frame(Frame(Operation.PULL, self.name, reply.queue, b"", reply.request_id))
        if is_new and asked in self.began:
            settlement = Frame(Operation.OK, self.name, reply.queue, b"", reply.request_id, settles=True)
            self.put_on(encode_frame(settlement))


class Plain(Member):
    """An original: it takes off messages with its name, and forwards everything else."""

    def take(self, payload: bytes, store_refuses: bool = False) -> bool:
        frame = parse_frame(payload)
        if frame is not None and frame.sender == self.name:
            self.answers.append(frame)
        else:
            self.inbox[payload] += 1
            self.outgoing.append(payload)
        return True


class Ring:
    """Members, each the successor of the one before it."""

    def __init__(self, members: list[Member]) -> None:
        self.members = members

    def successor(self, place: int) -> Member:
        return self.members[(place + 1) % len(self.members)]

    def send(self, place: int, store_refuses: bool = False) -> bool:
        """Send one message to the successor; return whether there was one."""
        member = self.members[place]
        if member.unanswered >= len(member.outgoing):
            return False
        payload = member.outgoing[member.unanswered]
        member.unanswered += 1
        if not self.successor(place).take(payload, store_refuses):
            self.break_link(place)
        return True

    def answer(self, place: int) -> None:
        """Acknowledge all messages that the successor has."""
        member = self.members[place]
        for _ in range(member.unanswered):
            member.outgoing.popleft()
        member.unanswered = 0

    def break_link(self, place: int) -> None:
        """Break a link: unanswered messages are sent again (2.2)."""
        self.members[place].unanswered = 0

    def kill(self, place: int) -> Member:
        """Kill a node.

        Its memory is lost; messages for its successor are in the store, for its predecessor to take over.
        """
        dead = self.members.pop(place)
        heir = self.members[place - 1]
        heir.unanswered = 0
        heir.outgoing += dead.outgoing
        return dead

    def settle_down(self, max_steps: int) -> None:
        """Forward all messages until none moves any more (ring.md 5.5: everything leaves the ring some day)."""
        for _ in range(max_steps):
            moved = [self.send(place) for place in range(len(self.members))]
            for place in range(len(self.members)):
                self.answer(place)
            if not any(moved):
                return
        raise AssertionError(f"still circling: {[len(member.outgoing) for member in self.members]}")

    def first_server(self, sender: bytes, queue: bytes) -> Member | None:
        """Return the node that is to carry out a request (5.3)."""
        place = next(place for place, member in enumerate(self.members) if member.name == sender)
        behind = self.members[place + 1 :] + self.members[:place]
        return next((member for member in behind if queue in member.serves), None)
