"""The documentation as a site: what mkdocs does not do by itself, so that the same Markdown works on a code host, too.

`hooks` is what mkdocs calls. `places` knows which file of the repository is which page, `sources` shows files that are
no pages, `markdown` says in Python-Markdown's words what code hosts understand without.
"""
