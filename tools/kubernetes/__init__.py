"""Real programs for tests, of modules and packages alone: Kubernetes, a store of objects. `tools.kubernetes GROUP`.

`programs.py` says which programs and versions, `modules/` holds the Go modules that pin what they are made of,
`build.py` builds them into the cache, `lock.py` writes the modules anew after a version was raised.
"""
