"""Buckets, and directories of any other file system that fsspec opens."""
