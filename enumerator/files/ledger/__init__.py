"""What the file source knows: which files were seen, and what of them is not yet assigned."""
