"""Tables of what happened, each from the archived rows of its hours: pure functions of data frames.

Sums are whole numbers, everything else is computed from them by one expression: so the same rows give the same octets.
"""
