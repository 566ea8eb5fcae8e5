"""Dates and timestamps from text, by one set of rules for every format."""
