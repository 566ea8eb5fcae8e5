"""The `filter` option: its text, its conditions, and what they leave out."""
