"""The report on some hours of the tables, as a page and as a JSON document.

`period` reads sums and lists by the SQL of `queries`, `figures` makes the document of them (its shape is in
services/store/report), `page` renders it with `plots`; `output` writes both, and sends the document to
the store.
"""
