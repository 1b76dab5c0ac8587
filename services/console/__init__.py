"""The console: an HTTP API over the store, live events, and the files of the web page that uses them.

It is no edge, as nobody puts messages through it by a protocol, and it looks after nothing: it may be ended, or run
several times, without anybody else noticing. `operations` says what a route is, `table` lists them all; both the
application (`app`) and the OpenAPI document (`openapi`) are made of that table. What a handler in `api/` raises is
answered by `problems`, who asks is found by `identity`, and every change is written down by `audit`. It must not know
any edge, nor the command line.
"""
