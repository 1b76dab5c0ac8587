"""The console: an HTTP API over the store, live events, and the files of the web page that uses them.

It is not an edge: no protocol puts messages through it. It keeps no state that other processes need, so it may be
ended, or run several times. `core.route` says what a route is, `routes` lists them all; both the
application (`app`) and the OpenAPI document (`openapi`) are made of that table. What a handler in `api` raises is
answered by `contract.problems`, the caller is found by `access`, and every change is written down by `audit`. It must
not know any edge, nor the command line.
"""
