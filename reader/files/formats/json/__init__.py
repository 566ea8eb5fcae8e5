"""JSON: lines and documents, by two fast parsers and an exact one."""
