"""Knows Spark: the data source, its options, its offsets, and the adapters of both readers."""
