"""What is written about a resource: its status and its events, and when.

It does not decide what is true of a resource.
"""
