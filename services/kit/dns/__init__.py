"""Names are looked up, and TCP connections opened, with a time limit that holds.

It knows nothing of what is said over a connection.
"""
