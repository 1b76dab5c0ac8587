"""Queue resources become queues of the store: claims, conflicts, changes and deletion.

It knows neither peers nor redrives.
"""
