"""The images of the Dockerfile: `python -m tools.images` builds them with docker or buildah, whichever is there.

`build.py` builds, `base.py` makes a base out of Debian's packages where none can be pulled,
`storage.py` keeps buildah's storage clean.
"""
