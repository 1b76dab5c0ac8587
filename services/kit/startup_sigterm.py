"""Which signals ask a process to end, and what they do while it starts: before there is anything to drain.

The kernel gives the first process of a container no signal that it does not handle: one that comes while Python imports
what it needs would be lost for good, and whoever sent it waits until he kills. Imports nothing that takes time.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable


def stop_signals() -> tuple[signal.Signals, ...]:
    """Return the signals that ask a serving process to drain.

    Of a terminal these are Ctrl-C, Ctrl-\\, and SIGHUP when it goes; but `nohup` ignores that, and so do we then.
    """
    asks = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT)
    return asks if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN else (*asks, signal.SIGHUP)


def exit_on_signals(status: int, signals: Iterable[signal.Signals] = (signal.SIGTERM,)) -> None:
    """End the process with that status at these signals, from now on until something else handles them."""
    for number in signals:
        signal.signal(number, lambda *_: os._exit(status))
