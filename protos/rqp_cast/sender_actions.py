"""The input of a sending agent, and the actions that it wants (rqp_cast.md 4).

Times are seconds of the clock that `now` comes from; translate them to keep them for longer.
"""

import enum
from dataclasses import dataclass

from protos.rqp_cast.messages import AcceptSenderMsg
from protos.rqp_cast.question import agent_of
from protos.rqp_cast.wire import Quality


class Why(enum.Enum):
    """How an attempt ended; the values are metric labels, that of `unconfirmed` also the dead letter's reason."""

    CONFIRMED = "confirmed"  # SUCCESS
    SENT = "sent"  # uncertain, and the last octet has left
    NO_ANSWER = "no_answer"  # no answer within T_WAIT1
    NOT_BEGUN = "not_begun"  # it ended before the first octet: counts as no answer (4.1)
    CUT_SHORT = "cut_short"  # it ended between the first and the last octet of DATA_MSG
    NOT_CONFIRMED = "not_confirmed"  # sent whole, and no END_TRANSMISSION_MSG within T_WAIT4
    FAILURE = "failure"  # FAILURE
    UNCONFIRMED = "unconfirmed"  # the last FAILURE of `max_attempts` (4.2)


class Unheard(enum.Enum):
    """Why input is refused: its connection is closed and counted; the values are metric labels."""

    NOT_LISTED = "not_listed"  # from no address of .rqprc; checked where connections are accepted (1.1)
    NOT_ASKED = "not_asked"  # an answer for a key that is not being asked for now (1.1)
    OTHER_RECEIVER = "other_receiver"  # not the receiver that the message was sent to before (4.2)
    FOREIGN_SOURCE = "foreign_source"  # a confirmation from another address than the receiver's (1.2)
    OTHER_ID = "other_id"  # a confirmation of another message (4.2)
    NOT_AWAITED = "not_awaited"  # a confirmation before the first octet, or after the end


@dataclass(frozen=True, slots=True)
class Kept:
    """The durable state of a certain message between its attempts."""

    failures: int = 0  # FAILUREs received, of `max_attempts`
    receiver: str | None = None  # the only one that may still get it (4.2)
    first_whole_at: float | None = None  # when it was first about to be sent whole
    not_before: float | None = None  # when the next attempt may begin; None: at any time


@dataclass(frozen=True, slots=True)
class Outgoing:
    """The message to send next. An uncertain one has ZERO_ID, and nothing was kept with it."""

    quality: Quality  # certain or uncertain
    id: int  # u32; ZERO_ID for an uncertain one
    kept: Kept = Kept()  # what an earlier attempt stored with it

    @property
    def is_certain(self) -> bool:
        """True if the message must be confirmed."""
        return self.quality is Quality.HIGH_QUALITY


@dataclass(frozen=True, slots=True)
class Offer:
    """An ACCEPT_SENDER_MSG from `source`; `agent` identifies its sender in later attempts (2.2)."""

    agent: str  # IPv4, identifies the receiving agent
    source: str  # IPv4, from which the answer came
    key: int  # of the queue, u32
    accept_port: int  # TCP, for ACCEPT_RECEIVER_MSG
    data_port: int  # TCP, for DATA_MSG

    @classmethod
    def of(cls, message: AcceptSenderMsg, source: str, trust_address: bool) -> "Offer":
        """Make an offer of a message that came from `source`."""
        agent = agent_of(message.address, source, trust_address)
        return cls(agent, source, message.key, message.accept_port, message.data_port)


@dataclass(frozen=True, slots=True)
class Ask:
    """Listen on findreceiver_port, send QUESTION_MSG: to all of .rqprc, or only to `receiver` if it is there (3.1)."""

    receiver: str | None  # IPv4; None: all machines of .rqprc


@dataclass(frozen=True, slots=True)
class Approve:
    """Send ACCEPT_RECEIVER_MSG to the offer's accept_port; then `approved`, or `failed` (3.3).

    For a certain message endtransmission_port is opened before: T_WAIT4 is counted from here.
    """

    offer: Offer  # the answer that was taken
    quality: Quality  # of the message
    id: int  # of the message


@dataclass(frozen=True, slots=True)
class Keep:
    """Keep this with the message, durably, before what follows; if that fails, `failed` (4.2)."""

    kept: Kept  # to be stored with the message


@dataclass(frozen=True, slots=True)
class SendData:
    """Connect to the offer's data_port, send DATA_MSG; `begun` before its first octet, `sent` after its last (3.4).

    Otherwise `failed`. Report `sent` as soon as the last octet may have left: when the kernel takes it.
    """

    offer: Offer  # the answer that was taken


@dataclass(frozen=True, slots=True)
class CloseAll:
    """The attempt is over: close everything that was opened for it, before anything else begins (1.2).

    `is_timed_out`: its port rests for PORT_REST_S, since a late END_TRANSMISSION_MSG may still come.
    """

    is_timed_out: bool  # True: the port rests


@dataclass(frozen=True, slots=True)
class Remove:
    """The message is done: remove it from the transmission queue (FINAL_STATE)."""

    why: Why  # how the attempt ended


@dataclass(frozen=True, slots=True)
class PutBack:
    """Uncertain and not sent: put it back into the transmission queue (BEFORE_TRANSMISSION_STATE)."""

    why: Why  # how the attempt ended


@dataclass(frozen=True, slots=True)
class MoveToEnd:
    """Certain and not confirmed: move it behind the other messages for its key, keeping this with it (4.1, 4.2)."""

    why: Why  # how the attempt ended
    kept: Kept  # to be stored with the message


@dataclass(frozen=True, slots=True)
class Bury:
    """Move it to the dead letters, with `why` as the reason (FINAL_STATE)."""

    why: Why  # the reason of the dead letter
    kept: Kept  # to be stored with the message


@dataclass(frozen=True, slots=True)
class Hold:
    """Never send it again, as its receiver may have forgotten it: move it to the dead letters and alert (4.2)."""

    kept: Kept  # to be stored with the message


@dataclass(frozen=True, slots=True)
class Refuse:
    """Close the connection that this came from, and count it. Nothing else changes."""

    why: Unheard  # the label to count it by


# what a `Sender` returns
SenderAction = (
    Ask | Approve | Keep | SendData | CloseAll | Remove | PutBack | MoveToEnd | Bury | Hold | Refuse
)
