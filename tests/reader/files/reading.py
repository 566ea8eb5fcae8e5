"""Reads real files the way a task does, for the tests of the reader's room."""

from pyspark_sluice.reader.files.testing import CONTEXT, cut, read, read_rows, version, whole

__all__ = ["CONTEXT", "cut", "read", "read_rows", "version", "whole"]
