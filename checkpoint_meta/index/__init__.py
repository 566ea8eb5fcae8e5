"""The index of files already seen: fingerprints in sorted columns, in immutable runs."""
