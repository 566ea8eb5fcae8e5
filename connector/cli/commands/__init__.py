"""The commands that have a module of their own, with their arguments."""
