"""A year of flights lands while its ingestion is killed in mid-batch; then every row is counted."""
