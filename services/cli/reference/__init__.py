"""Pages of the documentation that are made from commands and settings.

No command imports it.
"""
