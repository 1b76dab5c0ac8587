"""The console: an HTTP API over the store, live events, and the files of the web page that uses them.

It is not an edge, and keeps no state that other processes need, so it can be stopped at any time or run several
times. `core.route` defines a route and `routes` lists them all; the application (`app`) and the OpenAPI document
(`openapi`) are built from that table. `contract.problems` maps exceptions of handlers in `api` to responses, `access`
identifies callers, and `audit` records changes. It must not import edges or the command line.
"""
