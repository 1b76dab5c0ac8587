"""Rows of the data source as rows of bronze: redacted, with fingerprints, and with problems of clocks. Only Arrow."""
