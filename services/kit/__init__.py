"""The server shell that all edges share.

The kit accepts and opens connections, speaks TLS, enforces limits, timers and back-pressure, drains on SIGTERM, and
provides settings, logs, metrics and health pages. An edge brings a session factory, its settings and its flags
(`services.kit.edge`).

It must not know any protocol, the queue store, Redis, or any edge: nothing here may import them.
"""
