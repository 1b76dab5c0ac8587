"""The report: what the tables of some hours say, in a page for people and a document for programs.

`period` finds the tables, `figures` computes the document (services/store/report has its shape), `page` makes a page of
it with `plots`; `output` has both among what a run publishes, and gives the document to the store.
"""
