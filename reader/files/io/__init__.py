"""From a file to bytes: opening one version of it, codecs, and whole records of text."""
