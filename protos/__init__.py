"""The protocols: bytes in, events out; answers in, bytes out. Nothing here performs I/O.

Each protocol has a numbered spec (`tmq.md`) and a package of the same name that implements it: limits and
layout, events as frozen dataclasses, `encode_*` / `parse_*`, and a `Connection` that turns whatever TCP
delivers into events, however TCP happened to cut it. `types.py` holds the few types that all protocols share,
`runs.py` makes one event of many like requests, `connection_input.py` keeps what is unfinished.

What it must not know: sockets, event loops, TLS, clocks (time comes in as `now`, in seconds), logging, the
store, the services, other protocols. Only the standard library may be imported; import-linter checks it. That
is what makes a protocol testable at every byte and every split, and lets one server shell carry all of them.
"""
