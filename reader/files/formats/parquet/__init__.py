"""Parquet: row groups, and the footer that says where they are."""
