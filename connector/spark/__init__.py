"""Spark's side: the data source, its stream and batch readers, offsets, and one partition read."""
