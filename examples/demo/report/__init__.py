"""One HTML page from a state directory: how ingestion went, for people."""
