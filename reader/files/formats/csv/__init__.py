"""CSV: a fast parser, and an exact one for what it refuses."""
