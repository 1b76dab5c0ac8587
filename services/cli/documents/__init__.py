"""Documents and bodies as commands are given them: YAML files, options of a queue, message bodies, selections of letters.

It prints nothing.
"""
