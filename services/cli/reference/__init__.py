"""Generators of the documentation pages for commands and settings."""
