"""Several sources in a row: each to its end, then the next one from where that was."""
