"""The console: an HTTP API over the store, live events, and the files of the web page that uses them.

It is no edge, as nobody puts messages through it by a protocol, and it looks after nothing: it may be ended, or run
several times, without anybody else noticing. `core.route` says what a route is, `routes` lists them all; both the
application (`app`) and the OpenAPI document (`openapi`) are made of that table. What a handler in `api` raises is
answered by `contract.problems`, the caller is found by `access`, and every change is written down by `audit`. It must
not know any edge, nor the command line.
"""
