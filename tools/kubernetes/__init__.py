"""Build real servers for the tests from Go modules and packages: `python -m tools.kubernetes GROUP`.

`programs.py` lists programs and versions, `modules/` holds the Go modules that pin their dependencies, `build.py`
builds them into the cache, `lock.py` updates the modules after a version was raised.
"""
