"""Settings of a process: layers of defaults, file, environment and flags, with their secrets.

It reads settings only: what they mean is for whoever is given them.
"""
