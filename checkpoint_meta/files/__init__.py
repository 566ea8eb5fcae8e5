"""Documents of the file source: versions of files, splits of them, and their columns."""
