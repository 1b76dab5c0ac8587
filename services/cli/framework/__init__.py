"""What commands share: options, settings, and opening the store."""
