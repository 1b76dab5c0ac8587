"""The audit log: a line for each requested change. Does not decide on access."""
