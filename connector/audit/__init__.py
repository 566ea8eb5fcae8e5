"""Compares what was delivered with what the query has read, and with what its table has."""
