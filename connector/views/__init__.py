"""The state of a query as tables. Nothing is written, and a query that runs does not notice.

A view raises an OptionError if the state is of a source without files that it needs, and a
StateError if a part of the state is damaged, or newer than this release.
"""
