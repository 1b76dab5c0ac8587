"""Build the images of the Dockerfile with docker or buildah: `python -m tools.images`.

`build.py` builds, `base.py` makes a base image from Debian's packages where none can be pulled, `storage.py` cleans
buildah's storage.
"""
