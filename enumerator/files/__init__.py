"""The file source's half: which files are there, and which ranges of them make a batch."""
