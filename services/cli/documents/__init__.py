"""What commands are given: YAML files, options of a queue, message bodies, selections of letters.

It prints nothing.
"""
