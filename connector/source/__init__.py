"""What a source is, how it is found, and the built-in one: files."""
