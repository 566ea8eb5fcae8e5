"""One module for each file format: how it is cut into splits and how it is decoded."""
