"""The common parts of commands: options, settings, and opening the store."""
