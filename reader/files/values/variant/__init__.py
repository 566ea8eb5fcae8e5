"""Spark's `variant`: its encoding, and its columns in Parquet."""
