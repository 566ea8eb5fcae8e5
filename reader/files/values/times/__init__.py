"""Dates and timestamps from text, and wall clocks in time zones, by one set of rules: Spark's.

CSV, JSON, partition values and the literals of `filter` all come here; no other code reads a time.
`temporal` is the face. Beneath: `zones` (what a zone's name means, skipped and repeated hours),
`exact` (what one text means, ISO 8601 or by a pattern), and `layouts`, the vectorised way, which
takes only what the other two would read to the same value.
"""
