"""The server shell that every edge shares.

The kit accepts connections and opens others, speaks TLS, keeps the caps, the timers, the back-pressure and the
input budget, drains on SIGTERM, and gives a process its settings, logs, metrics and health pages. An edge brings a
session factory, its own settings and flags (`services.kit.edge`); the kit brings everything else.

From a listener down: `listener` accepts, `gate` decides who may come in; `dialler` opens connections to others
(`reach` finds them); `connections` is what both are. `connection` is one connection's shell around one session
(`session` says what the two owe each other), `stream` and `output` the TCP below it, `alarm` its single timer, `tls`
its encryption, `budget` the memory all of them may hold. For the session: `parsing` and `inflow` for its input,
`conversation` and `answers` for its replies, `ending` for its end, `tally` for its figures. From the process down:
`run` is one process, `workers` several of them, `drain` the way out, `health` the pages, `board` what the workers tell
the health process. `letters` is how a protocol's files of dead letters reach the command line, `words` is how numbers
are told to people.

It must not know any protocol, the queue store, Redis, or any edge: nothing here may import them.
"""
