"""What the HTTP API says: shapes of its documents, problems (RFC 9457), cursors, ETags and roles.

It computes only, and knows neither the store nor aiohttp's server.
"""
