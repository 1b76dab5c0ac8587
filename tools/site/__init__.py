"""Extend mkdocs so that the documentation's Markdown works both on the site and on a code host.

mkdocs calls `hooks`. `places` maps files of the repository to pages, `sources` makes pages of source files, `markdown`
converts CommonMark to what Python-Markdown needs.
"""
