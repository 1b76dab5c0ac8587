"""The calls that are compared. Each is made of steps on up to two connections; the answer to the last one counts."""

from __future__ import annotations

from dataclasses import dataclass

NAME_LIMIT, BODY_LIMIT = 255, 1 << 20  # bytes that Penstock accepts unless configured otherwise


@dataclass(frozen=True, slots=True)
class Call:
    """Steps, separated by commas: `[B] OPERATION [queue] [body]`.

    A step uses connection A unless it says B. Before the first one, A has created and opened the queue `q` and
    B is connected. `n` and `x` are further names, of no queue as yet; `nil` is the MQID that no queue has. LEAVE
    disconnects, RESET disconnects with a reset, SEND sends hexadecimal bytes.
    """

    steps: str
    why: str = ""  # the answers differ


CREATES = "an empty name, or one of more than 255 bytes, is refused (2.1)"
OPENS = "an MQID is usable only on a connection that has opened it (2.3)"
ANSWERS = "every request is answered, or the connection is closed (4.3)"
UNKNOWN = (
    "an ENQ that stores nothing is answered as failed; the original answers success and then reads the message's bytes "
    "as requests"
)
PLACE = "a returned message goes to its old place, not behind all others (5.7)"

CALLS = (
    # queues
    Call("CREATE n"),
    Call("CREATE n, CREATE n"),
    Call("B CREATE q"),
    Call("OPEN {empty}"),
    Call("CREATE {empty}", CREATES),
    Call("CREATE {255 bytes}"),
    Call("CREATE {256 bytes}", CREATES),
    Call("OPEN q"),
    Call("B OPEN q"),
    Call("OPEN x"),
    Call("CREATE n, B OPEN n"),
    Call("CLOSE q"),
    Call("CLOSE q, CLOSE q"),
    Call("CLOSE q, OPEN q"),
    Call("OPEN q, CLOSE q, CLOSE q", "a queue that was opened twice is closed by one CLOSE (2.3)"),
    Call("B CLOSE q", OPENS),
    Call("CLOSE x", ANSWERS),
    Call("CLOSE nil", ANSWERS),
    Call("DELETE q", ANSWERS),
    Call("DELETE x", ANSWERS),
    # messages
    Call("ENQ q a"),
    Call("ENQ q {empty}"),
    Call("ENQ q {empty}, DNQ q"),
    Call("ENQ q {all bytes}, DNQ q"),
    Call("ENQ q {1 MiB}"),
    Call("ENQ q {1 MiB + 1}", "`max_message_bytes` is 1 MiB (7.1)"),
    Call("ENQ x a", UNKNOWN),
    Call("ENQ nil a", UNKNOWN),
    Call("B ENQ q a", OPENS),
    Call("CLOSE q, ENQ q a", OPENS),
    Call("DNQ q"),
    Call("ENQ q a, DNQ q"),
    Call("ENQ q a, ENQ q b, DNQ q, DNQ q"),
    Call("ENQ q a, DNQ q, DNQ q"),
    Call("ENQ q a, B OPEN q, B DNQ q"),
    Call("DNQ x"),
    Call("DNQ nil"),
    Call("ENQ q a, B DNQ q", OPENS),
    Call("ENQ q a, CLOSE q, DNQ q", OPENS),
    Call("ENQ q a, LEAVE, B OPEN q, B DNQ q"),
    Call(
        "ENQ q a, B OPEN q, DNQ q, RESET, B DNQ q",
        "a message is settled by the next request, or by FIN (6.1)",
    ),
    Call("SELECT q"),
    Call("ENQ q a, SELECT q"),
    Call("ENQ q a, DNQ q, SELECT q"),
    Call("SELECT x"),
    Call("SELECT nil"),
    Call("ENQ q a, B SELECT q", OPENS),
    Call("ENQ q a, CLOSE q, SELECT q", OPENS),
    # transactions
    Call("TS"),
    Call("TE"),
    Call("TA"),
    Call("TS, TS"),
    Call("TS, TE"),
    Call("TS, TA"),
    Call("TS, TE, TE"),
    Call("TS, TA, TA"),
    Call("TS, ENQ q a"),
    Call("TS, ENQ q a, B OPEN q, B SELECT q"),
    Call("TS, ENQ q a, DNQ q"),
    Call("TS, ENQ q a, TA, SELECT q"),
    Call("TS, ENQ q a, LEAVE, B OPEN q, B DNQ q"),
    Call("ENQ q a, TS, DNQ q, SELECT q"),
    Call("ENQ q a, TS, DNQ q, TA, SELECT q"),
    Call("ENQ q a, TS, DNQ q, TE, SELECT q, TA, SELECT q"),
    Call("ENQ q a, TS, DNQ q, LEAVE, B OPEN q, B DNQ q"),
    Call("ENQ q a, DNQ q, TS, TA, SELECT q"),
    Call("ENQ q a, ENQ q b, TS, DNQ q, TA, DNQ q", PLACE),
    Call(
        "ENQ q a, TS, DNQ q, TS, TA, SELECT q",
        "a TS inside a transaction keeps taken messages; the original drops them permanently (5.7)",
    ),
    Call("TS, CREATE n, TA, OPEN n"),
    Call("ENQ q a, TS, DNQ q, CLOSE q, TA, OPEN q, SELECT q"),
    # bad input
    Call("SEND 0a", "what follows an unknown code cannot be told (3.2)"),
    Call("SEND 0a, TE", "what follows an unknown code cannot be told (3.2)"),
    Call("ENQ q {16 MiB + 1, without its body}", "it is refused before its body is sent (7.1)"),
    Call("SEND 00000000, LEAVE, B CREATE n", "a request that is cut short ends the original server (3.3)"),
)
