"""Dead letters are searched, redriven and purged here, and puts wait for what becomes of their message.

Why a message dies is decided by the functions in `lua`; this package only reads and moves what is dead.
"""

from services.store.deadletters.dead import PAGE, PAGE_OCTETS, WHOLE, Looked, Redriven
from services.store.deadletters.delivery_tracking import Ending, Fate, Watch
from services.store.deadletters.emptying import Emptied, Emptying, Ready, ready
from services.store.deadletters.redriving import Pace, redrive_steps

__all__ = [
    "PAGE",
    "PAGE_OCTETS",
    "WHOLE",
    "Emptied",
    "Emptying",
    "Ending",
    "Fate",
    "Looked",
    "Pace",
    "Ready",
    "Redriven",
    "Watch",
    "ready",
    "redrive_steps",
]
