"""`sluice verify`: whether a state directory is whole."""
