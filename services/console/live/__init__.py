"""The live view: poll all queues while clients watch, and compute what changed. Knows no requests."""
