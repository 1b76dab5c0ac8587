"""Links between stores: what arises at one is taken by the others (pubsub.md 4.3-4.6).

A connection carries a link in both directions, whoever dialled it. `session` is what the kit calls: it greets, and
hands what comes to two parts with a task each. `taking` is the follower: it says what is held, takes what is missing
into the log, each entry with its origin, and skips what is there. `sending` serves the other side's wish: it reads our
log from a place on and sends what the other does not hold. `neighbours` dials those that the settings name. `hub` is
what all links of a process share; `held` are sets of numbers by origin.
"""
