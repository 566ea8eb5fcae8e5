"""binaryFile: files as rows."""
