"""Intervals and time limits of a node, in seconds (ring.md 2, 3, 4)."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Times:
    """Times of a node; the defaults are the spec's."""

    open_s: float = 30.0  # between two OPENs (3.5)
    open_first_s: float = 1.0  # the same in the beginning
    open_first_for_s: float = 10.0  # and how long that is
    newcomer_s: float = 5.0  # after which a silent predecessor counts
    alone_s: float = 300.0  # without a predecessor: LinkBroken(me) again
    own_ring_s: float = 60.0  # a head waits before it connects within its own ring (3.6 b)
    self_s: float = 120.0  # the same to itself (3.6 c)
    vain_s: float = 150.0  # that another tail was open before a ring is opened for it (3.8)
    propose_s: float = 300.0  # a leader proposes itself again (4.2)
    find_s: float = 60.0  # between two FINDs (4.3)
    no_leader_s: float = 650.0  # without a proposal: takes itself for its leader (4.6)
    confirm_s: float = 130.0  # for the FIND of an accepted leader (4.6)
    vacant_s: float = 60.0  # between two proposals without a known leader (4.6)
    lost_s: float = 300.0  # without a leader: the ring is opened (4.6)
    absent_s: float = 1200.0  # that it is not proposed by others, since it was found not to be here (4.6)
    ack_s: float = 5.0  # for an `A` (4.5)
    idle_s: float = 10.0  # after which a silent sender sends its name (2.6)
    silence_s: float = 30.0  # of a predecessor that used to send its name

    @property
    def hung_s(self) -> float:
        """Three proposal intervals: if no proposal comes around in this time, the ring is not whole (4.6)."""
        return 3 * self.propose_s
