"""Programs that show what Sluice does; each runs by one command."""
