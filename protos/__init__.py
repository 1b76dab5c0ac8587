"""The protocols: bytes in, events out; answers in, bytes out. Nothing here performs I/O.

Each protocol has a numbered spec (`tmq.md`) and a package of the same name that implements it: limits and
layout, events as frozen dataclasses, `encode_*` / `parse_*`, and a `Connection` that turns bytes into events,
regardless of how TCP splits them. `types.py` holds the few types that all protocols share,
`runs.py` combines equal requests into one event, `connection_input.py` keeps incomplete input.

Protocols do not use sockets, event loops, TLS, clocks (time is an argument, `now`, in seconds), logging, the
store, the services or other protocols. They may only import the standard library; import-linter checks it. So
tests can check a protocol at every byte and every split, and all protocols run in the same server shell.
"""
