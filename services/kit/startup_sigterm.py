"""Handle SIGTERM during startup, before there is anything to drain.

The first process of a container gets no signal that it does not handle: a SIGTERM during imports would be lost, and the
sender would wait until it sends SIGKILL. So this module imports nothing slow.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable


def stop_signals() -> tuple[signal.Signals, ...]:
    """Return the signals that ask a serving process to drain: SIGTERM, and those of a terminal.

    SIGHUP is not among them if it is ignored, as under `nohup`.
    """
    signals = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT)
    return signals if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN else (*signals, signal.SIGHUP)


def exit_on_signals(status: int, signals: Iterable[signal.Signals] = (signal.SIGTERM,)) -> None:
    """Exit with this status at these signals, until something else handles them."""
    for number in signals:
        signal.signal(number, lambda *_: os._exit(status))
