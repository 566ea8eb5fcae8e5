"""How long a test waits for what has to happen: for a machine that does much else."""

from __future__ import annotations

PATIENCE = 600
"""Seconds; the bound of a wait that ends as soon as what it waits for is there."""
