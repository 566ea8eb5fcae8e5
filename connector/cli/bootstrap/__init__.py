"""Prepares the state of a new query: a fork of another one, or files that are known as read."""
