"""Decides what is read next, and by which reader."""
