"""The file source's half: ranges of files, from bytes to batches in Spark's schema."""
