"""Run Redrive resources: move dead letters back in steps and report the progress."""
