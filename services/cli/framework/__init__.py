"""What commands share: options, settings, and how they find and open the store.

It knows no single command.
"""
