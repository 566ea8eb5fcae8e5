"""Two sources in a row: the first to its end, then the second from where that was."""
