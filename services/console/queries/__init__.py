"""What a request asks for: pages, selections of queues and dead letters, and patterns on bodies.

It knows nothing of how an answer is found.
"""
